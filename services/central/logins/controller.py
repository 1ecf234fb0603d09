"""The controller of logins: the hub asks about a leaf, the API server reviews its token, the answer is signed."""

from collections.abc import Mapping
from typing import Any, Protocol

import structlog

from services.central.core.logins.bus_login import AUDIENCE, Asked, answer_claims, node_of, token_of, user_claims
from services.central.settings import NAME
from shared import telemetry
from shared.core.bus.nats_jwt import Sign, account_key, claims_of, signed
from shared.errors import Refused, Unavailable
from shared.ports import Clock

log = structlog.get_logger()

MAX_REQUEST_BYTES = 64 << 10
"""Of a question; a token is some 1 kB, and no line of the server's protocol may be longer than 16."""


class TokenReviews(Protocol):
    """Reviews tokens."""

    async def review(self, token: str, audience: str) -> Mapping[str, Any]:
        """Return the status of a TokenReview.

        Raises:
            Unavailable: no answer.
        """
        ...


class Signer(Protocol):
    """An Ed25519 key."""

    @property
    def public(self) -> bytes:
        """32 bytes."""
        ...

    @property
    def sign(self) -> Sign:
        """Return the signature function."""
        ...


class LoginController:
    """Answers one question after another, each by itself. `agents` is the user name of the agents.

    While the key is replaced there are two controllers: each answers the hubs that name its key, and one of them
    (`unnamed`) also the hubs that name none.
    """

    def __init__(self, reviews: TokenReviews, key: Signer, clock: Clock, *, agents: str, unnamed: bool = True) -> None:
        self._reviews, self._key, self._clock, self._agents, self._unnamed = reviews, key, clock, agents, unnamed
        self.issuer = account_key(key.public)
        """The public key, as the hub has it."""

    async def answer(self, request: bytes) -> bytes | None:
        """The signed answer to a request of the server; None where the hub wants it by another key.

        Raises:
            Refused: it is not a request.
        """
        if len(request) > MAX_REQUEST_BYTES:
            raise Refused(f"{len(request)} bytes, at most {MAX_REQUEST_BYTES} are read", reason="too_large")
        asked = Asked.of(claims_of(request))
        # Silent, not refused: the central with the other key answers, and a refusal would be the answer.
        if not asked.wants(self.issuer, unnamed=self._unnamed):
            return None
        try:
            node = node_of(await self._reviews.review(token_of(asked), AUDIENCE), agents=self._agents)
        except (Refused, Unavailable) as refusal:
            telemetry.REFUSED.labels(NAME, "login", refusal.reason).inc()
            log.warning("login.refused", kind=asked.kind, reason=refusal.reason, why=str(refusal))
            # Answer even if the API server is away: the leaf is refused at once and retries, instead of a timeout at
            # the hub.
            return self._signed(answer_claims(asked, refused=str(refusal)))
        telemetry.TAKEN.labels(NAME, "login").inc()
        log.info("login.taken", of=node)
        return self._signed(answer_claims(asked, user=self._signed(user_claims(asked, node)).decode()))

    def _signed(self, claims: Mapping[str, Any]) -> bytes:
        now = int(self._clock.wall().timestamp())
        return signed(claims, issuer=self.issuer, issued_at=now, sign=self._key.sign).encode()
