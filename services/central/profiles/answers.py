"""Answers the API server about pods, from mirrors of profiles, namespaces and priority classes."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Literal

import structlog

from services.central.core.profiles.cluster_objects import NAME_LABEL, NAMESPACES, namespace_of
from services.central.core.profiles.profiled_pod import ProfilesInForce
from services.central.core.profiles.review import (
    MAX_REVIEW_BYTES,
    ReviewAnswer,
    mutate,
    mutate_by_name,
    read_review,
    validate,
)
from services.central.ports.https import HttpRequest, Reply, Route
from services.central.profiles.mirrors import ProfileMirrors
from shared import telemetry
from shared.core.log_limit import LogLimit
from shared.errors import Refused, SubletError
from shared.ports import Clock, Objects

log = structlog.get_logger()

Question = Literal["mutate", "validate"]
BAD_REQUEST, OK = 400, 200


class ProfileAnswers:
    """Refuses only by a rule: an unreadable pod, or a mirror that is not filled yet, changes nothing."""

    def __init__(self, mirrors: ProfileMirrors, objects: Objects, clock: Clock, *, gated: bool = False) -> None:
        """`gated`: pods that request reclaimed resources are created behind the gate."""
        self._mirrors, self._objects, self._clock, self._gated = mirrors, objects, clock, gated
        self._log_limit = LogLimit()

    @property
    def routes(self) -> list[Route]:
        """Where the API server asks."""
        questions: tuple[Question, ...] = ("mutate", "validate")
        return [
            Route("POST", f"/{question}", MAX_REVIEW_BYTES, partial(self._reply, question), partial(_lost, question))
            for question in questions
        ]

    async def _reply(self, question: Question, request: HttpRequest) -> Reply:
        return await self.answer(question, request.body)

    async def answer(self, asked: Question, text: bytes) -> Reply:
        """Answer a body of any content."""
        began_s = self._clock.monotonic()
        try:
            found = await self._answer(asked, text)
        except Refused as refusal:
            telemetry.POD_REVIEWS.labels(asked, "malformed").inc()
            return Reply(BAD_REQUEST, str(refusal)[:200].encode())
        telemetry.POD_REVIEWS.labels(asked, found.outcome).inc()
        telemetry.POD_REVIEW_SECONDS.labels(asked).observe(self._clock.monotonic() - began_s)
        for name, why in found.failed.items():
            telemetry.PROFILES_FAILED.inc()
            held_back = self._log_limit.may_say(name, began_s)
            if held_back is not None:
                log.warning("profile.not_applied", profile=name, why=why, held_back=held_back)
        return Reply(OK, json.dumps(found.document, separators=(",", ":")).encode())

    async def _answer(self, asked: Question, text: bytes) -> ReviewAnswer:
        review = read_review(text)
        if asked == "validate":
            return validate(review)
        profiles = self._mirrors.readable
        rules = ProfilesInForce(profiles, self._mirrors.priority_classes, gated=self._gated)
        if all(profile.namespace_selector is None for profile in profiles):
            return mutate(review, rules, {})
        labels = await self._labels(review.namespace)
        return mutate_by_name(review, rules) if labels is None else mutate(review, rules, labels)

    async def _labels(self, namespace: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, read directly if it is too new for the mirror. None: unknown."""
        known = self._mirrors.namespace_labels(namespace)
        if known is not None:
            return known
        try:
            document = await self._objects.get(NAMESPACES, namespace)
            return {NAME_LABEL: namespace} if document is None else namespace_of(document).labels
        except SubletError:
            return None


def _lost(question: Question, outcome: str) -> None:
    telemetry.POD_REVIEWS.labels(question, outcome).inc()
