"""Answers the API server about Koordinator's ConfigMap before it is stored: parts that could not be followed are
refused.

A large ConfigMap takes far more time and memory than a pod, so only one is read at a time. Meanwhile the API server
stores another one as it was sent (`failurePolicy: Ignore`), and central names its faults.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from services.central.core.admission.allowed import answer
from services.central.core.profiles.review import FORBIDDEN, MAX_SLO_REVIEW_BYTES, read_review
from services.central.core.slo.config_map import MAX_KEY_BYTES, MAX_NAMED, config_map_of, read_slo_config
from services.central.ports.https import HttpRequest, Reply, Route
from shared import telemetry
from shared.core.log_limit import LogLimit
from shared.errors import Refused
from shared.ports import Clock

log = structlog.get_logger()

BAD_REQUEST, BUSY, OK = 400, 503, 200
MAX_MESSAGE = 2000
NEXT_STEP = "correct it; `sublet config slo -f FILE` says the same of a file"


@dataclass(frozen=True, slots=True)
class SloConfigReview:
    """Which question it was, and what is newly wrong with the ConfigMap that it asks about."""

    uid: str
    faults: list[str]


class SloConfigAnswers:
    """Refuses only faults that an update introduces: earlier ones block no other change."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._log_limit = clock, LogLimit()
        self._reading: asyncio.Task[SloConfigReview] | None = None

    @property
    def route(self) -> Route:
        """Where the API server asks."""
        return Route("POST", "/validate-slo-config", MAX_SLO_REVIEW_BYTES, self._reply, _lost)

    async def _reply(self, request: HttpRequest) -> Reply:
        return Reply(*await self.answer(request.body))

    async def answer(self, text: bytes) -> tuple[int, bytes]:
        """Answer a body of any content with an HTTP status and a body."""
        if self._reading is not None and not self._reading.done():
            _lost("not_read")
            return BUSY, b"another ConfigMap is being read; send it again"
        # In a thread, so that pods are answered meanwhile. A thread does not end with its waiter, hence `shield`.
        self._reading = asyncio.create_task(asyncio.to_thread(_review, text))
        try:
            review = await asyncio.shield(self._reading)
        except Refused as refusal:
            return BAD_REQUEST, str(refusal)[:200].encode()
        response: dict[str, Any] = {"uid": review.uid, "allowed": not review.faults}
        if review.faults:
            shown = _in_short(review.faults)
            response["status"] = {"code": FORBIDDEN, "reason": "Forbidden", "message": f"{shown}: {NEXT_STEP}"}
            held_back = self._log_limit.may_say("not_admitted", self._clock.monotonic())
            if held_back is not None:
                log.warning("slo.not_admitted", faults=len(review.faults), why=shown, held_back=held_back)
        return OK, json.dumps(answer(response)).encode()


def _lost(outcome: str) -> None:
    telemetry.POD_REVIEWS.labels("validate_slo", outcome).inc()


def _review(text: bytes) -> SloConfigReview:
    review = read_review(text)
    return SloConfigReview(review.uid, slo_config_faults(review.pod, review.old_pod))


def _in_short(faults: list[str]) -> str:
    """The first faults, and how many more there are."""
    more, message = len(faults) - MAX_NAMED, "; ".join(faults[:MAX_NAMED])
    shown = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}…"
    return f"{shown}; and {more} more" if more > 0 else shown


def slo_config_faults(config_map: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[str]:
    """Return what is wrong with the ConfigMap and was not with the previous one.

    Raises:
        Refused: one of them holds more than the API server accepts.
    """
    faults = _faults(config_map)
    before = set(_faults(old)) if faults and old is not None else ()
    return [fault for fault in faults if fault not in before]


def _faults(document: Mapping[str, Any]) -> list[str]:
    """Return all faults: of two truncated lists, the rest would count as new."""
    data = config_map_of(document).data
    size = sum(len(text) for text in data.values())
    if size > MAX_KEY_BYTES:
        raise Refused(f"data: {size} characters, at most {MAX_KEY_BYTES} are read", reason="too_large")
    return [str(problem) for problem in read_slo_config(data, most_problems=None).problems]
