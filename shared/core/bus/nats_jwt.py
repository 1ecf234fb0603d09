"""Keys and tokens in NATS' format: the text of a key, and claims signed by an account.

An nkey is a letter for the kind, the Ed25519 key and a CRC-16, in base 32; a token is a JWT whose algorithm is
`ed25519-nkey` (NATS ADR-14). Nothing is verified here: callers must know the origin of a token.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from shared.core.text.json_text import read_json_object
from shared.errors import Refused

Sign = Callable[[bytes], bytes]
"""The Ed25519 signature of some bytes, 64 bytes long."""

MAX_CLAIMS_BYTES = 64 << 10
"""A question of the server has some 4 KiB, with the token of a leaf in it."""
_ACCOUNT = 0
"""The first byte, so chosen that base 32 shows an A (nats-io/nkeys, strkey.go)."""
_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}


def account_key(public: bytes) -> str:
    """The public key of an account, "A…"."""
    raw = bytes([_ACCOUNT]) + public
    check = binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(raw + check).decode().rstrip("=")


def signed(claims: Mapping[str, Any], *, issuer: str, issued_at: int, sign: Sign) -> str:
    """A token with these claims; `issued_at` in seconds since 1970."""
    body = {**claims, "iss": issuer, "iat": issued_at}
    body["jti"] = base64.b32encode(hashlib.sha256(_json(body)).digest()).decode().rstrip("=")
    text = f"{_part(_json(_HEADER))}.{_part(_json(body))}"
    return f"{text}.{_part(sign(text.encode()))}"


def claims_of(token: bytes) -> dict[str, Any]:
    """Return a token's claims, not verified.

    Raises:
        Refused: it is no token.
    """
    try:
        part = token.split(b".")[1]
        text = base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))
        return read_json_object(text, what="claims", max_bytes=MAX_CLAIMS_BYTES)
    except (IndexError, ValueError, Refused) as error:
        raise Refused(f"not a token: {error}", reason="malformed") from error


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
