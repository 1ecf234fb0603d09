"""Keys and tokens as NATS writes them, and the signatures under them."""

import base64
import json

import pytest

from shared.adapters.ed25519 import SigningKey
from shared.core.bus.nats_jwt import account_key, claims_of, signed
from shared.errors import Refused

RFC_8032 = (
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
        "655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        "b00d291612bb0c00",
    ),
)
"""Section 7.1, tests 1 and 2: seed, public key, message, signature."""


@pytest.mark.parametrize(("seed", "public", "message", "signature"), RFC_8032)
def test_a_signature_is_the_standards(seed: str, public: str, message: str, signature: str) -> None:
    key = SigningKey(bytes.fromhex(seed))
    assert (key.public.hex(), key.sign(bytes.fromhex(message)).hex()) == (public, signature)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_seed_has_32_bytes(length: int) -> None:
    with pytest.raises(ValueError, match=f"{length} bytes"):
        SigningKey(bytes(length))


def test_a_key_has_its_letter_and_a_check_sum() -> None:
    account = account_key(bytes(32))
    assert (account[0], len(account)) == ("A", 56)
    assert account_key(b"\1" + bytes(31))[-4:] != account[-4:]


def test_a_token_holds_its_claims_and_is_signed_over_both_parts() -> None:
    key = SigningKey(bytes(range(32)))
    token = signed({"sub": "x"}, issuer="A1", issued_at=7, sign=key.sign)
    head, body, signature = token.split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"typ": "JWT", "alg": "ed25519-nkey"}
    assert base64.urlsafe_b64decode(signature + "==") == key.sign(f"{head}.{body}".encode())
    claims = claims_of(token.encode())
    assert (claims["sub"], claims["iss"], claims["iat"]) == ("x", "A1", 7)
    assert claims["jti"] != claims_of(signed({"sub": "y"}, issuer="A1", issued_at=7, sign=key.sign).encode())["jti"]


@pytest.mark.parametrize("text", [b"", b"x", b"a.b.c", b"a.W10.c", b"a.\xff.c"])
def test_what_is_no_token_is_refused(text: bytes) -> None:
    with pytest.raises(Refused) as refused:
        claims_of(text)
    assert refused.value.reason == "malformed"
