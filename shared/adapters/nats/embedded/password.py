"""Makes the passwords of the bus' logins, and the bcrypt hashes of them in the server's configuration."""

import secrets

import bcrypt

PASSWORD_BYTES = 24
COST = 6
"""Some 4 ms at every login. 192 random bits are out of reach of any search: a slower hash would only tax the server."""


def new_password() -> str:
    """Random, of characters that need no quoting in an address."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def password_hash(password: str) -> str:
    """Return the bcrypt hash of a password, with a salt of its own.

    Raises:
        ValueError: the password has more than the 72 bytes that bcrypt reads, or a NUL.
    """
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(COST)).decode()
