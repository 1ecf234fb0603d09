"""Ed25519 signatures by OpenSSL, which Python stands on itself: no further dependency, and no arithmetic of our own."""

import ctypes

from shared.errors import Unfit

LIBRARIES = ("libcrypto.so.3", "libcrypto.so.1.1", None)
"""None: a Python that has it built in."""
SEED_BYTES, KEY_BYTES, SIGNATURE_BYTES = 32, 32, 64
_ED25519 = 1087
"""NID_ED25519 of OpenSSL's obj_mac.h."""


class SigningKey:
    """The key that a seed of 32 bytes makes (RFC 8032)."""

    def __init__(self, seed: bytes) -> None:
        """Raises Unfit where this system has no OpenSSL 1.1.1 or newer."""
        if len(seed) != SEED_BYTES:
            raise ValueError(f"seed of {len(seed)} bytes, want {SEED_BYTES}")
        self._crypto = _library()
        key = self._crypto.EVP_PKEY_new_raw_private_key(_ED25519, None, seed, ctypes.c_size_t(SEED_BYTES))
        if not key:
            raise Unfit("this system's OpenSSL makes no Ed25519 key", reason="no_ed25519")
        self._key = ctypes.c_void_p(key)

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        out, size = ctypes.create_string_buffer(KEY_BYTES), ctypes.c_size_t(KEY_BYTES)
        self._crypto.EVP_PKEY_get_raw_public_key(self._key, out, ctypes.byref(size))
        return out.raw

    def sign(self, data: bytes) -> bytes:
        """The signature, 64 bytes.

        Raises:
            Unfit: OpenSSL made none.
        """
        out, size = ctypes.create_string_buffer(SIGNATURE_BYTES), ctypes.c_size_t(SIGNATURE_BYTES)
        work = ctypes.c_void_p(self._crypto.EVP_MD_CTX_new())
        try:
            begun = self._crypto.EVP_DigestSignInit(work, None, None, None, self._key) == 1
            made = begun and self._crypto.EVP_DigestSign(
                work, out, ctypes.byref(size), data, ctypes.c_size_t(len(data))
            )
        finally:
            self._crypto.EVP_MD_CTX_free(work)
        if made != 1:
            raise Unfit("this system's OpenSSL makes no Ed25519 signature", reason="no_ed25519")
        return out.raw


def _library() -> ctypes.CDLL:
    for name in LIBRARIES:
        try:
            crypto = ctypes.CDLL(name)
            crypto.EVP_PKEY_new_raw_private_key.restype = ctypes.c_void_p
            crypto.EVP_MD_CTX_new.restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        return crypto
    raise Unfit("no OpenSSL 1.1.1 or newer on this system: install libssl", reason="no_ed25519")
