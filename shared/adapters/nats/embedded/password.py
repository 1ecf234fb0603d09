"""Logins at the bus have random passwords, and bcrypt hashes of them in the server's configuration.

The hash is computed by the C library's `crypt` (libxcrypt, musl), as the server itself only compares.
"""

import ctypes
import secrets
import string

from shared.errors import Unfit

PASSWORD_BYTES = 24
COST = 6
"""Some 4 ms at every login. 192 random bits are out of reach of any search: a slower hash would only tax the server."""
LIBRARIES = ("libcrypt.so.1", "libcrypt.so.2", None)
"""None: the C library itself, where musl has it."""
_SALT = string.ascii_letters + string.digits + "./"
_LAST_OF_SALT = ".Oeu"
"""22 characters of 6 bits hold the 128 bits of a salt: the last one has two of its own."""


def new_password() -> str:
    """Random, of characters that need no quoting in an address."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def password_hash(password: str) -> str:
    """The bcrypt hash of a password, with a salt of its own.

    Raises:
        Unfit: this system's C library has no bcrypt.
    """
    salt = "".join(secrets.choice(_SALT) for _ in range(21)) + secrets.choice(_LAST_OF_SALT)
    setting = f"$2b${COST:02d}${salt}"
    for name in LIBRARIES:
        try:
            crypt = ctypes.CDLL(name).crypt
        except (OSError, AttributeError):
            continue
        # Without it ctypes would cut the returned pointer to an int.
        crypt.argtypes, crypt.restype = (ctypes.c_char_p, ctypes.c_char_p), ctypes.c_char_p
        made: bytes | None = crypt(password.encode(), setting.encode())
        # A library without bcrypt answers with another scheme's hash, or with "*0".
        if made is not None and made.startswith(setting[: len("$2b$06$")].encode()):
            return made.decode()
    raise Unfit("no bcrypt in this system's C library: install libcrypt (libxcrypt)", reason="no_bcrypt")
