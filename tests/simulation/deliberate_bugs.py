"""Deliberate bugs: one rule of the product is broken at a time, and the simulation has to notice.

Each is a patch of the product's own code, in force while its context lasts. `make test-sim-mutations` counts the worlds
that it takes to see each of them.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from services.central.adapters.pod_evictions import AnnouncedEvictions
from services.central.adapters.reclaimed_pods import KubeReclaimedPods
from services.central.core.heartbeats.ears import OtherCentral, OtherCentrals
from services.central.core.heartbeats.listening import ShardsHeard
from services.central.core.lost_nodes import actions, guards, verdict
from services.central.core.lost_nodes.pacing import Pace
from services.central.core.view.cluster_view import ClusterView
from services.central.core.view.evidence import LostEvidence
from services.central.hearing.shards import ShardedHearing
from services.central.leadership.leader import Leader
from services.central.nodes.observer import NodeObserver
from services.evictor.core.arbiter import choice, ranking
from services.evictor.detectors import Detectors
from services.evictor.plugins import memory_pressure
from services.evictor.record.journal import IntentJournal
from services.evictor.record.outbox import Outbox
from services.qrm import allocation_reporter
from services.qrm.adapters.kernel import groups as kernel_groups
from services.qrm.adapters.kernel import writer
from services.qrm.adapters.lease.client import LeaseClient
from services.qrm.adapters.lease.watchdog import LeaseWatchdog
from services.qrm.core.active_advice import ActiveAdvice
from services.qrm.lease.renewal import LeaseRenewal
from services.reporter.core.offer_smoother import OfferSmoother
from shared.adapters.kube import evictor as kube_evictor
from shared.adapters.kube.evictor import KubeEvictor
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.core.bus.newest import NewestGate
from shared.ports import ActionResult

Patches = Callable[[], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Bug:
    """One rule that is broken."""

    rule: str
    patches: Patches

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """The product with the bug."""
        with contextlib.ExitStack() as stack:
            for one in self.patches():
                stack.enter_context(one)
            yield


def _wrapped(owner: Any, name: str, make: Callable[[Any], Any]) -> Any:
    """Replace a function by what `make` makes of it."""
    return patch.object(owner, name, make(getattr(owner, name)))


def _no_uid() -> Sequence[Any]:
    def make(body: Any) -> Any:
        def without(*args: Any, **more: Any) -> Any:
            made = body(*args, **more)
            made["deleteOptions"].pop("preconditions")
            return made

        return without

    return [_wrapped(kube_evictor, "_eviction", make)]


def _no_rehearsal() -> Sequence[Any]:
    def make(evict: Any) -> Any:
        async def real_alone(self: Any, pod: Any, *, dry_run: bool = False, **more: Any) -> Any:
            return ActionResult("accepted") if dry_run else await evict(self, pod, **more)

        return real_alone

    return [_wrapped(KubeEvictor, "evict", make)]


def _call_before_ledger() -> Sequence[Any]:
    def make(move: Any) -> Any:
        def forgetful(self: Any, record: Any, step: str, **more: Any) -> Any:
            if step == "requested":
                return record.follow(step, detail="", now_s=self._wire.clock.monotonic())
            return move(self, record, step, **more)

        return forgetful

    return [_wrapped(IntentJournal, "move", make)]


def _sent_before_stored() -> Sequence[Any]:
    def make(send: Any) -> Any:
        async def early(self: Any, message: Any, left_over: Any) -> int:
            self._ledger.published(message.fact_id, sequence=0, now_s=self._clock.monotonic())
            sequence: int = await send(self, message, left_over)
            return sequence

        return early

    return [_wrapped(Outbox, "_send", make)]


def _event_without_ledger() -> Sequence[Any]:
    def make(advance: Any) -> Any:
        def apart(self: Any, record: Any, outgoing: Any = (), **more: Any) -> None:
            advance(self, record, (), **more)
            if outgoing:
                self._later = [*getattr(self, "_later", []), *outgoing]

        return apart

    def waiting(wait: Any) -> Any:
        def beside(self: Any, limit: int) -> Any:
            later, self._later = getattr(self, "_later", []), []
            return [*wait(self, limit), *later]

        return beside

    return [_wrapped(SqliteLedger, "advance", make), _wrapped(SqliteLedger, "waiting", waiting)]


def _new_ids_at_each_try() -> Sequence[Any]:
    def make(send: Any) -> Any:
        tries = iter(range(1 << 40))

        async def renamed(self: Any, message: Any, left_over: Any) -> int:
            fresh = replace(message, headers={**message.headers, "Nats-Msg-Id": f"{message.msg_id}/{next(tries)}"})
            sequence: int = await send(self, fresh, set())
            return sequence

        return renamed

    return [_wrapped(Outbox, "_send", make)]


def _tenants_first() -> Sequence[Any]:
    """The plugin ranks them first, and the guard looks at each candidate by itself."""

    def make(allowed: Any) -> Any:
        def one_by_one(candidates: Any, around: Any) -> Any:
            alone = [allowed([candidate], around) for candidate in candidates]
            return tuple(sum((able for able, _ in alone), ())), tuple(sum((spared for _, spared in alone), ()))

        return one_by_one

    return [
        _wrapped(memory_pressure, "ranked", lambda ranked: lambda *args, **more: ranked(*args, **more)[::-1]),
        _wrapped(choice, "allowed", make),
        _wrapped(ranking, "allowed", make),
    ]


def _any_gate(verdict_of: Callable[[str], str]) -> Sequence[Any]:
    def make(judge: Any) -> Any:
        return lambda self, boot, seq, now_s: verdict_of(judge(self, boot, seq, now_s))

    return [_wrapped(NewestGate, "judge", make), *_any_age()]


def _any_age() -> Sequence[Any]:
    """Central asks neither numbers nor the clock in a node's lease how old a heartbeat is."""
    return [patch.object(NodeObserver, "sent_ago_s", lambda *_args: None)]


def _judged(change: Callable[[Any], Any]) -> Sequence[Any]:
    from services.central.core.view import evidence

    return [_wrapped(evidence, "judge", lambda judge: lambda seen, rules: judge(change(seen), rules))]


def _silence_is_death() -> Sequence[Any]:
    """Neither the verdict nor the last look before an eviction asks for the agent's pod."""
    dead = _judged(lambda seen: replace(seen, agent_ready=False, agent_not_ready_s=seen.silent_s or 0.0))
    return [*dead, patch.object(KubeReclaimedPods, "agent_lives", lambda *_args: False)]


def _not_ready_is_lost() -> Sequence[Any]:
    """Neither the verdict nor the last look before an eviction asks for heartbeats."""
    return [
        *_judged(lambda seen: replace(seen, silent_s=seen.agent_not_ready_s)),
        patch.object(LostEvidence, "_doubtful", lambda _self, seen: seen.nodes),
        patch.object(NodeObserver, "silent_s", lambda *_args: float("inf")),
    ]


def _unheard_is_silent() -> Sequence[Any]:
    """Neither does another central take over, nor does anybody notice that it should."""
    return [
        patch.object(OtherCentral, "lives", lambda self, _now_s: not self.is_new),
        patch.object(OtherCentrals, "forget", lambda *_args: None),
        patch.object(ShardsHeard, "unheard", lambda *_args: ()),
        patch.object(ShardsHeard, "since_s", lambda *_args: 0.0),
    ]


def _deaf_central_claims() -> Sequence[Any]:
    """Its rounds say that its probe came back this moment, and come whether it did or not."""

    def make(play: Any) -> Any:
        async def claiming(self: Any, bus: Any, probe: Any, rules: Any) -> None:
            now_s = self._clock.monotonic()
            since_s = now_s if probe.since_s is None else probe.since_s
            await play(self, bus, replace(probe, heard_at_s=now_s, since_s=since_s), rules)

        return claiming

    return [_wrapped(ShardedHearing, "round", make)]


def _leading(of: Callable[[Any], bool]) -> Sequence[Any]:
    return [patch.object(Leader, "leading", property(of))]


def _told_as_wished() -> Sequence[Any]:
    def make(pools: Any) -> Any:
        def more(arranged: Any, *args: Any) -> Any:
            return tuple(
                one.model_copy(update={"cpus": str(arranged[one.pool])}) if one.pool in arranged else one
                for one in pools(arranged, *args)
            )

        return more

    return [_wrapped(allocation_reporter, "pools_in_force", make)]


def _never_falls() -> Sequence[Any]:
    def make(smoothed: Any) -> Any:
        def kept(self: Any, applied: int, now_s: float, *, may_rise: bool) -> int:
            self.most = max(getattr(self, "most", 0), smoothed(self, applied, now_s, may_rise=may_rise))
            return int(self.most)

        return kept

    return [_wrapped(OfferSmoother, "smoothed", make)]


def _oversold() -> Sequence[Any]:
    return [
        _wrapped(
            allocation_reporter, "offered", lambda made: lambda *args, **more: (made(*args, **more)[0] * 2, 1 << 30)
        )
    ]


def _plans(order: Callable[[list[Any]], list[Any]]) -> Sequence[Any]:
    def make(plan: Any) -> Any:
        return lambda *args: order(plan(*args))

    return [_wrapped(writer, "plan_writes", make)]


def _not_apart() -> Sequence[Any]:
    def make(wanted: Any) -> Any:
        def wide(self: Any, arrangement: Any, present: Any) -> Any:
            pools = dict(arrangement.pools)
            for own in arrangement.owned.values():
                pools["reclaim"] |= own.cpus
            placement = replace(arrangement.placement, pools=pools)
            return wanted(self, replace(arrangement, placement=placement), present)

        return wide

    return [_wrapped(kernel_groups.CgroupGroups, "_wanted", make)]


MUTATIONS: dict[str, Bug] = {
    "silence of the bus is death": Bug(
        "rule 2, P1",
        _silence_is_death,
    ),
    "an agent that is not ready is lost": Bug("rule 2, P1", _not_ready_is_lost),
    "lost nodes lose their pods at once": Bug(
        "rule 2, P1",
        lambda: [
            patch.object(verdict, "next_step", lambda *_args, **_more: "evict"),
            patch.object(ClusterView, "may_lose_pods", lambda *_args: True),
        ],
    ),
    "a node that is heard again is not asked for": Bug(
        "rule 2, P1", lambda: [patch.object(NodeObserver, "silent_s", lambda *_args: float("inf"))]
    ),
    "messages of an old boot are taken": Bug(
        "P1", lambda: _any_gate(lambda found: "new" if found == "retired" else found)
    ),
    "replayed messages are taken": Bug(
        "P1", lambda: _any_gate(lambda found: "new" if found in ("replayed", "stale") else found)
    ),
    "heartbeats of the past are news to a new central": Bug("P1", _any_age),
    "a shard that nobody hears is silent": Bug("rule 2, P1", _unheard_is_silent),
    "a deaf central claims its shards": Bug("rule 2, P1", _deaf_central_claims),
    "an old pressure is evidence": Bug(
        "rule 1, P1", lambda: [patch.object(Detectors, "evidence", lambda *_args: "for")]
    ),
    "tenants go before batch work": Bug("rule 3, P1", _tenants_first),
    "evictions do not say the UID": Bug("rule 4, P2", _no_uid),
    "evictions are called before the ledger knows": Bug("rule 4, P2", _call_before_ledger),
    "evictions are not rehearsed": Bug("rule 4, P5", _no_rehearsal),
    "events count as stored before they are": Bug("P3", _sent_before_stored),
    "events wait in memory, not in the ledger": Bug("P3", _event_without_ledger),
    "each try of an event has an id of its own": Bug("P3", _new_ids_at_each_try),
    "central does not tell that a pod is gone": Bug(
        "P3", lambda: [patch.object(AnnouncedEvictions, "report_gone", _nothing)]
    ),
    "guards object to nothing": Bug(
        "P4",
        lambda: [
            patch.object(guards.Guards, "objection", lambda *_args: ""),
            patch.object(guards, "allowed_bad", lambda total, *_more: total),
        ],
    ),
    "evictions of lost nodes have no pace": Bug(
        "P4", lambda: [patch.object(Pace, "spend", lambda _self, bucket, _now_s: bucket)]
    ),
    "sets are written in the wrong order": Bug("rule 5, P6", lambda: _plans(lambda plan: plan[::-1])),
    "reclaimed pods get dedicated CPUs": Bug("P6", _not_apart),
    "advice never grows old": Bug("P7", lambda: [patch.object(ActiveAdvice, "stage", lambda *_args: "applied")]),
    "leases run longer than their advice": Bug(
        "P7",
        lambda: [
            _wrapped(LeaseRenewal, "renew", lambda renew: lambda self, left_s, *rest: renew(self, left_s + 20, *rest))
        ],
    ),
    "each restart makes the lease longer": Bug(
        "P7", lambda: [_wrapped(LeaseClient, "left_s", lambda left: lambda self: left(self) + 1.0)]
    ),
    "the watchdog does not write": Bug("P7", lambda: [patch.object(LeaseWatchdog, "apply_floor", lambda _self: None)]),
    "an uninstalled node keeps its sets": Bug(
        "rule 10, P8", lambda: [patch.object(kernel_groups, "restore_groups", lambda *_args: ())]
    ),
    "what was wished is told as applied": Bug("O", _told_as_wished),
    "an offer never falls": Bug("O", _never_falls),
    "more is offered than the pool holds": Bug("O", _oversold),
    "two lead at once": Bug("L", lambda: [patch.object(Leader, "_free", lambda *_args: True)]),
    "a leader does not look at its deadline": Bug("L", lambda: _leading(lambda self: self.holder == self._identity)),
    "a taint is never taken away": Bug(
        "end",
        lambda: [
            _wrapped(
                actions,
                "due",
                lambda due: (
                    lambda judged, **more: "nothing" if due(judged, **more) == "untaint" else due(judged, **more)
                ),
            )
        ],
    ),
}


async def _nothing(_self: Any) -> None:
    return None
