"""Answers schedulers: which nodes a pod may go to, how well each suits, whether evictions would help."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from services.central.core.scheduling.cluster.judge import Judge, Looking, Now
from services.central.core.scheduling.cluster.pod_asks import pod_asked
from services.central.core.scheduling.cluster.reservations import Reservations
from services.central.core.scheduling.cluster.suits import Suits
from services.central.core.scheduling.cluster.victims import PreemptRequest
from services.central.core.scheduling.extender_reply import (
    ExtenderRequest,
    filter_reply,
    prioritize_reply,
)
from services.central.ports.https import HttpRequest, Reply, Route
from services.central.scheduling.mirrors import SchedulingMirrors
from services.central.scheduling.placement_log import PlacementLog
from shared import telemetry
from shared.core.text.json_text import read_json
from shared.errors import Refused
from shared.ports import Clock

Verb = Literal["filter", "prioritize", "preempt"]
OK, BAD_REQUEST, NOT_FOUND = 200, 400, 404
MOST_BYTES = 8 << 20
"""A pod of 3 MiB, and the names of 20 000 nodes; a scheduler need not send whole Node objects of that many."""
MOST_NODES = 20_000
"""In one call; a scheduler asks about those alone that could take the pod, of a large cluster about some of them."""
UNKNOWN_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ExtenderRules:
    """The rules behind the answers."""

    judge: Judge
    suits: Suits
    reservations: Reservations


@dataclass(frozen=True, slots=True)
class SchedulerCall:
    """The time of a request, and whether it comes from a trusted scheduler: room is reserved only for those."""

    now: Now
    ours: bool


class ExtenderAnswers:
    """Answers from memory and without interruption: between the check of a node and the reservation on it there is
    no other answer.

    Anyone who reaches the port may ask. A client without a trusted certificate is answered, but leaves no trace;
    otherwise any pod of the cluster could have all room reserved for pods that do not exist.
    """

    def __init__(self, rules: ExtenderRules, mirrors: SchedulingMirrors, clock: Clock, log: PlacementLog) -> None:
        self._judge, self._suits, self._reservations = rules.judge, rules.suits, rules.reservations
        self._mirrors, self._clock, self._log = mirrors, clock, log
        self._strangers = asyncio.Lock()

    @property
    def routes(self) -> list[Route]:
        """Return the routes of the three verbs, and of everything else."""
        verbs: dict[Verb, Callable[[Any, SchedulerCall], object]] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
        }
        found = [self._route(verb, answer) for verb, answer in verbs.items()]
        return [
            *found,
            *(Route(how, "/{rest:.*}", UNKNOWN_BYTES, _unknown, _lost("unknown")) for how in ("GET", "POST")),
        ]

    def _route(self, verb: Verb, answer: Callable[[Any, SchedulerCall], object]) -> Route:
        async def reply(asked: HttpRequest) -> Reply:
            if asked.client is not None:
                return answered(asked)
            async with self._strangers:
                await asyncio.sleep(0)
                return answered(asked)

        def answered(asked: HttpRequest) -> Reply:
            began_s = self._clock.monotonic()
            try:
                body = read_json(asked.body, what=f"body of {verb}", max_bytes=MOST_BYTES)
                now = Now(began_s, self._clock.wall().timestamp())
                found = answer(body, SchedulerCall(now, asked.client is not None))
            except Refused as refusal:
                telemetry.EXTENDER_CALLS.labels(verb, "malformed").inc()
                return _said(BAD_REQUEST, str(refusal)[:300])
            telemetry.EXTENDER_CALLS.labels(verb, "answered").inc()
            telemetry.EXTENDER_SECONDS.labels(verb).observe(self._clock.monotonic() - began_s)
            return Reply(OK, json.dumps(found, separators=(",", ":")).encode())

        return Route("POST", f"/v1/{verb}", MOST_BYTES, reply, _lost(verb))

    def _filter(self, body: object, call: SchedulerCall) -> dict[str, Any]:
        request = ExtenderRequest.read(body)
        if request is None:
            return filter_reply(None, {})
        _check_count(request.names)
        looking = self._looking(request.pod, call.now)
        judged = self._judge.judged(looking, request.names, call.now)
        if call.ours:
            fits = [node for node, one in judged.items() if one.standing.fits]
            self._reservations.reserve(looking.pod.seen.uid, looking.pod.seen.ask, fits, call.now.monotonic_s)
            self._log.filtered(looking.pod.seen, judged)
        telemetry.EXTENDER_HELD.set(len(self._reservations))
        for rule, nodes in Counter(one.rule for one in judged.values() if not one.standing.fits).items():
            telemetry.EXTENDER_REFUSALS.labels(rule).inc(nodes)
        return filter_reply(request, {node: one.standing for node, one in judged.items()})

    def _prioritize(self, body: object, call: SchedulerCall) -> list[dict[str, Any]]:
        request = ExtenderRequest.read(body)
        if request is None:
            return prioritize_reply(None, {})
        _check_count(request.names)
        looking = self._looking(request.pod, call.now)
        scores = self._suits.scores(looking, request.names, call.now)
        if call.ours:
            self._log.scored(looking.pod.seen, scores)
        return prioritize_reply(request, scores)

    def _preempt(self, body: object, call: SchedulerCall) -> dict[str, Any]:
        request = PreemptRequest.read(body)
        if request is None:
            raise Refused("preempt: want Pod, and NodeNameToMetaVictims or NodeNameToVictims", reason="malformed")
        _check_count(request.victims)
        looking = self._looking(request.pod, call.now)
        fits = {
            node: self._judge.fits_without(looking, node, victims, call.now)
            for node, victims in request.victims.items()
        }
        return request.reply(fits)

    def _looking(self, pod: Mapping[str, Any], now: Now) -> Looking:
        # While pods with a node are not visible, no accepted pod may be forgotten.
        if self._mirrors.follows_pods:
            self._reservations.expire(now.monotonic_s)
        return self._judge.looking(pod_asked(pod))


def _check_count(nodes: Collection[str]) -> None:
    """Refuse calls that others would have to wait for.

    Raises:
        Refused: there are too many nodes in one.
    """
    if len(nodes) > MOST_NODES:
        raise Refused(f"{len(nodes)} nodes in one call: at most {MOST_NODES} are looked at", reason="too_many")


def _lost(verb: str) -> Callable[[str], None]:
    def count(outcome: str) -> None:
        telemetry.EXTENDER_CALLS.labels(verb, outcome).inc()

    return count


async def _unknown(asked: HttpRequest) -> Reply:
    telemetry.EXTENDER_CALLS.labels("unknown", "not_found").inc()
    return _said(NOT_FOUND, f"{asked.path[:100]}: want POST /v1/filter, /v1/prioritize or /v1/preempt; binding is the "
                            "scheduler's own")  # fmt: skip


def _said(status: int, why: str) -> Reply:
    return Reply(status, json.dumps({"Error": why}).encode())
