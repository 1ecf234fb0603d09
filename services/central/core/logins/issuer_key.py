"""The key by which the hub knows central's answers to logins."""

import hashlib
import hmac

_PURPOSE = b"sublet: logins of leaves at the hub"


def login_seed(issuer: str) -> bytes:
    """The seed of the key by which the hub knows these answers, from the one secret that only both have."""
    return hmac.new(issuer.encode(), _PURPOSE, hashlib.sha256).digest()
