"""Answers the API server about the status of Nodes; it needs nothing but the question."""

import json

from services.central.core.admission.allowed import allowed, read_request
from services.central.core.overcommit.node_review import MAX_NODE_REVIEW_BYTES, node_patch
from services.central.ports.https import HttpRequest, Reply, Route
from shared import telemetry
from shared.errors import Refused
from shared.ports import Clock

BAD_REQUEST, OK = 400, 200
QUESTION = "node_status"


class NodeStatusAnswers:
    """Never refuses: a kubelet that could not write its status would lose its node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @property
    def route(self) -> Route:
        """Where the API server asks."""
        return Route("POST", "/mutate-node-status", MAX_NODE_REVIEW_BYTES, self._reply, _count)

    async def _reply(self, request: HttpRequest) -> Reply:
        return self.answer(request.body)

    def answer(self, text: bytes) -> Reply:
        """Answer a body of any content."""
        began_s = self._clock.monotonic()
        try:
            request = read_request(text, MAX_NODE_REVIEW_BYTES)
        except Refused as refusal:
            _count("malformed")
            return Reply(BAD_REQUEST, str(refusal)[:200].encode())
        patch, outcome = node_patch(request)
        _count(outcome)
        telemetry.POD_REVIEW_SECONDS.labels(QUESTION).observe(self._clock.monotonic() - began_s)
        return Reply(OK, json.dumps(allowed(request.uid, patch), separators=(",", ":")).encode())


def _count(outcome: str) -> None:
    telemetry.POD_REVIEWS.labels(QUESTION, outcome).inc()
