"""`SigningKey` signs with Ed25519 (RFC 8032), by the libsodium that PyNaCl brings along."""

from nacl.signing import SigningKey as SodiumKey

SEED_BYTES = 32


class SigningKey:
    """The key that a seed of 32 bytes makes."""

    def __init__(self, seed: bytes) -> None:
        """Make the key.

        Raises:
            ValueError: the seed is not 32 bytes long.
        """
        if len(seed) != SEED_BYTES:
            raise ValueError(f"seed of {len(seed)} bytes, want {SEED_BYTES}")
        self._key = SodiumKey(seed)

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return bytes(self._key.verify_key)

    def sign(self, data: bytes) -> bytes:
        """Return the 64-byte signature."""
        return self._key.sign(data).signature
