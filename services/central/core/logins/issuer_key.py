"""The key by which the hub knows central's answers to logins."""

import hashlib
import hmac

_PURPOSE = b"sublet: logins of leaves at the hub"


def login_seed(issuer: str) -> bytes:
    """The seed of the key that signs central's answers to the hub, made from the secret that hub and central share."""
    return hmac.new(issuer.encode(), _PURPOSE, hashlib.sha256).digest()
