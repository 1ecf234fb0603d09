"""Runs each round: holds the plugins' pressures against every guard, budget and bound, and begins what passes."""

import math
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog

from services.evictor.core.arbiter.budgets import Account, account
from services.evictor.core.arbiter.choice import ConfirmedPressure, choose
from services.evictor.core.arbiter.guards import Refusal, Surroundings, spared_by
from services.evictor.core.plugin import Candidate
from services.evictor.detectors import Detectors
from services.evictor.ports import EvictionLedger
from services.evictor.record.journal import EvictionRequest, IntentJournal
from services.evictor.record.refusals import RefusalBook
from services.evictor.settings import EvictorSettings
from shared.contracts.allocation import Allocation
from shared.contracts.mode import Mode
from shared.contracts.sample import NodeSample
from shared.core.evictions.intents import IntentRecord, TokenBucket
from shared.errors import Conflict

log = structlog.get_logger()

ACTING: tuple[Mode, ...] = ("enforce", "dry-run")
"""Each mode has its own round and budgets, so a rehearsed eviction never delays a real one."""


@dataclass(frozen=True, slots=True)
class RoundInput:
    """The input of one round."""

    now_s: float
    sample: NodeSample
    allocation: Allocation | None
    running: Collection[IntentRecord]
    """Evictions under way."""
    backing_off: Collection[str]
    """Pods that could not be evicted a moment ago, by UID."""


class Arbiter:
    """Decides who goes now; every refusal is noted with its guard."""

    def __init__(
        self,
        detectors: Detectors,
        journal: IntentJournal,
        ledger: EvictionLedger,
        refusals: RefusalBook,
        start: Callable[[IntentRecord], None],
    ) -> None:
        self._detectors, self._journal, self._ledger, self._refusals = detectors, journal, ledger, refusals
        self._start = start
        """Begins to carry out an intent that the ledger has."""

    def round(self, given: RoundInput, settings: EvictorSettings, barred: Refusal | None) -> None:
        """Choose victims and begin their evictions; where `barred` is given, no pod is evicted for that reason.

        Raises:
            Unavailable: the ledger does not work; what was begun is in it.
        """
        now_s, busy = given.now_s, {record.intent.plugin for record in given.running}
        # Runs even if no pod may be evicted: `held_back` and the refusals below name what would have happened.
        ready = self._detectors.ready(now_s, busy)
        for plugin, held in self._detectors.held_back(now_s):
            self._refusals.note(plugin, held, now_s)
        if barred is not None:
            for plugin in ready:
                self._refusals.note(plugin, barred, now_s)
            return
        # Shared by both modes: a pod that is being evicted is not rehearsed, nor the other way round.
        taken = {record.pod.uid for record in given.running}
        for mode in ACTING:
            of_mode = {plugin: r for plugin, r in ready.items() if self._detectors.settings_of(plugin).mode == mode}
            if of_mode:
                taken |= self._act(of_mode, mode, taken, given, settings)

    def _act(
        self,
        ready: dict[str, ConfirmedPressure],
        mode: Mode,
        taken: set[str],
        given: RoundInput,
        settings: EvictorSettings,
    ) -> set[str]:
        """Run one mode's round; gives the UIDs of those whose eviction was begun."""
        around = Surroundings(settings.protected_namespaces, taken, given.backing_off)
        begun = set()
        for choice in choose(ready, around, self._account(mode, given, settings), settings.limits):
            refusals = list(choice.refusals)
            for victim in choice.victims:
                refused = self._begin(choice.plugin, victim, ready[choice.plugin], given, settings)
                if refused is None:
                    begun.add(victim.pod.uid)
                else:
                    refusals.append(refused)
            self._detectors.note_refusals(choice.plugin, tuple(refusals))
            for refusal in refusals:
                self._refusals.note(choice.plugin, refusal, given.now_s)
        return begun

    def _account(self, mode: Mode, given: RoundInput, settings: EvictorSettings) -> Account:
        # A rehearsal has removed no pod, and must not use up a real budget.
        spent = (one for one in self._journal.spent if one.mode == mode)
        here = (r.pod for r in given.sample.pods if r.pod.phase in ("Pending", "Running") and not r.pod.terminating)
        staying = Counter(pod.owner_key for pod in here if pod.owner_key is not None)
        return account(settings.budgets.in_order, spent, given.now_s, staying)

    def _begin(
        self, plugin: str, victim: Candidate, ready: ConfirmedPressure, given: RoundInput, settings: EvictorSettings
    ) -> Refusal | None:
        """Begin one eviction; return a refusal if the rate or the ledger forbids it after all."""
        own, pod, now_s = self._detectors.settings_of(plugin), victim.pod, given.now_s
        per_minute = settings.evictions_per_minute
        # Read from the ledger each time: a restart gives nothing back (docs/facts/safety-rules.md#bounds-of-eviction).
        bucket = self._ledger.bucket(own.mode) or TokenBucket(per_minute, now_s)
        # At least one: a rate below one a minute would never fill a bucket up to a whole eviction.
        left = bucket.spend(now_s, capacity=max(1.0, per_minute), per_s=per_minute / 60)
        if left is None:
            wait_s = bucket.wait_s(now_s, per_s=per_minute / 60)
            used = f"{per_minute:g} evictions a minute on this node are used up"
            says = f"{used}; the next may begin in {math.ceil(wait_s)} s"
            return Refusal(pod.key, "rate_limit", pod.uid, says)
        allocation = given.allocation
        request = EvictionRequest(
            plugin=plugin,
            mode=own.mode,
            pressure=ready.pressure,
            victim=victim,
            grace_s=own.grace_period_s if own.grace_period_s >= 0 else pod.grace_s,
            deadline_s=settings.intent_deadline_s,
            based_on=(given.sample.ref, *((allocation.ref,) if allocation is not None else ())),
            seen_at_s=now_s,
        )
        try:
            # The bucket is written with the intent, in one transaction: a crash in between spends neither or both.
            record = self._journal.begin(request, left)
        # The ledger has a live intent for this pod after all: it decides, whatever this run remembers.
        except Conflict as error:
            log.warning("eviction.already_under_way", why=str(error))
            return spared_by("live_intent", pod)
        self._start(record)
        return None
