"""Identifies the owner of a token by a TokenReview."""

from collections.abc import Mapping
from typing import Any

from shared.adapters.kube.client import Kube, KubeError
from shared.errors import Unavailable

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
REVIEW_S = 1.5
"""Longest review: less than the 2 s after which a leaf gives its login up and tries again."""


class KubeTokens:
    """Reviews of tokens by an API server."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def review(self, token: str, audience: str) -> Mapping[str, Any]:
        """Return the status of the review.

        Raises:
            Unavailable: the API server does not answer, or refuses.
        """
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        try:
            answer = await self._kube.call("POST", PATH, body=body, timeout_s=REVIEW_S)
        except KubeError as error:
            raise Unavailable(f"token review: {error}", reason="token_review") from error
        return answer.get("status") or {}
