"""A recording of a cluster decided anew: each recorded decision beside what the same parts of central say now."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from services.central.settings import KubernetesSettings
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.decision import Decided, Decision
from shared.contracts.cluster.figures import PodFigures
from shared.contracts.cluster.offer import NodeOffer
from shared.core.object_reader import MAX_WHY
from shared.errors import Refused, SubletError
from shared.fakes.memory_bus import MemoryBus
from sublet.replay.decisions.difference import differences
from sublet.replay.decisions.frames import KIND_OF, ClusterFrame, RecordedObject
from sublet.replay.decisions.metrics import MetricsReplay
from sublet.replay.decisions.objects import RecordedObjects, ReplayClock
from sublet.replay.decisions.parts import GATES, Key, NewestDecisions, RecordedWorld, controllers, decider_of, key_of
from sublet.replay.decisions.placement import ANSWERS, PlacementReplay
from sublet.replay.decisions.reading import ClusterRecording

MAX_ROWS = 10_000
"""Decisions that are kept to be shown; all are counted."""
PLACEMENTS = "scheduling"


@dataclass(frozen=True, slots=True)
class DecidedTwice:
    """A decision as it was recorded, and anew. `replayed` is None where it cannot be: `why_not` says why."""

    at_s: float
    recorded: Decided | None
    """None: nobody has said it while it was recorded."""
    replayed: Decided | None
    why_not: str = ""
    differences: tuple[str, ...] = ()


@dataclass(slots=True)
class DecisionsOutcome:
    """What became of all of them."""

    frames: int = 0
    length_s: float = 0.0
    rows: list[DecidedTwice] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By area: same, different, not_replayed, only_now."""
    answers: list[dict[str, Any]] = field(default_factory=list)
    """Of the metrics API when the recording ends: path, status and body."""

    def total(self, result: str) -> int:
        """How many decisions ended so."""
        return sum(count for (_, one), count in self.counts.items() if one == result)

    def add(self, area: str, result: str, row: DecidedTwice) -> None:
        """Count a decision, and keep it as long as there is room."""
        self.counts[area, result] += 1
        if len(self.rows) < MAX_ROWS:
            self.rows.append(row)


class DecisionsReplay:
    """Follows the frames; passes are made when a decision is recorded, by what was known then."""

    def __init__(self, recording: ClusterRecording, settings: KubernetesSettings, asked: Sequence[str] = ()) -> None:
        """`asked`: paths of the metrics API, which are answered at the end."""
        self._recording, self._settings = recording, settings
        self._clock = ReplayClock(recording.began)
        bus = MemoryBus(clock=self._clock, name="replay")
        self._world = RecordedWorld(RecordedObjects(), bus, self._clock, NewestDecisions(), settings)
        self._areas = controllers(self._world)
        self._placements = PlacementReplay(self._world)
        self._passes = {**self._areas, GATES: self._placements.let_go}
        self._metrics = MetricsReplay(self._world, asked)
        self._stale = set(self._passes)
        """Passes before which something has changed since their newest one."""
        self._listening = False
        """Whether figures are heard: from the first pass on, which begins with the checkpoints of the recording."""
        self._passed_s = float("-inf")
        self._recorded: set[Key] = set()
        self.outcome = DecisionsOutcome()

    async def run(self) -> DecisionsOutcome:
        """Follow all frames, and decide once more at their end."""
        for frame in self._recording.frames:
            await self._take(frame)
        await self._end()
        self.outcome.answers = self._metrics.answers()
        return self.outcome

    async def _take(self, frame: ClusterFrame) -> None:
        await self._pass_time(frame)
        self.outcome.frames += 1
        self.outcome.length_s = frame.at_s
        match frame.what:
            case RecordedObject():
                there = self._world.objects.of(KIND_OF[frame.what.kind]).get(frame.what.uid)
                if (decider := decider_of(there, frame.what)) is not None:
                    await self._pass(decider)
                self._put(frame.what)
            case Decision():
                await self._decide(frame.at_s, frame.what)
                return
            case NodeOffer():
                self._placements.hear(frame.what)
            case PodFigures():
                if not self._listening:
                    self._listening = not await self._pass("recommendation")
                    await self._pass("service_profiles")
                self._metrics.hear(frame.what)
                await self._publish(frame.what)
        self._stale = set(self._passes)

    def _put(self, seen: RecordedObject) -> None:
        objects = self._world.objects
        if seen.document is None and (gone := objects.of(KIND_OF[seen.kind]).get(seen.uid)) is not None:
            self._world.decisions.forget(seen.kind, gone)
        try:
            objects.put(seen.kind, seen.uid, seen.document)
        except Refused as refusal:
            self._recording.faults.refuse(str(refusal))

    async def _publish(self, figures: PodFigures) -> None:
        await self._world.bus.publish(state_subject(PodFigures, figures.node), figures.encode())
        await asyncio.sleep(0)

    async def _pass_time(self, frame: ClusterFrame) -> None:
        """Passes happen also without any decision: pods that are gone end their hour then, and kills are learned."""
        self._clock.at_s, self._clock.now = frame.at_s, frame.now
        if self._listening and frame.at_s - self._passed_s >= self._settings.recommendation.pass_s:
            self._passed_s = frame.at_s
            for area in self._areas:
                await self._pass(area)

    async def _pass(self, area: str) -> str:
        """Make one pass; why it failed, "" where it did not."""
        self._stale.discard(area)
        try:
            await self._passes[area]()
        except Exception as error:  # noqa: BLE001 - whatever a part does not expect is the recording's doing
            return _words(error)
        return ""

    async def _decide(self, at_s: float, decision: Decision) -> None:
        recorded = Decided.model_validate(decision.model_dump(include=set(Decided.model_fields)))
        self._recorded.add(key_of(recorded))
        replayed, why_not = await self._anew(recorded)
        found = () if replayed is None else tuple(differences(recorded, replayed))
        result = "not_replayed" if replayed is None else "different" if found else "same"
        self.outcome.add(recorded.area, result, DecidedTwice(at_s, recorded, replayed, why_not, found))

    async def _anew(self, recorded: Decided) -> tuple[Decided | None, str]:
        area = recorded.area
        if area == PLACEMENTS:
            if recorded.verdict in ANSWERS:
                return self._placed(recorded)
            area = GATES
        if area not in self._passes:
            return None, f"decisions of {area} are not replayed"
        failure = await self._pass(area) if area in self._stale else ""
        replayed = self._world.decisions.of.get(key_of(recorded))
        why = f"the pass failed: {failure}" if failure else "nothing in the recording leads to it"
        return replayed, "" if replayed is not None else why

    def _placed(self, recorded: Decided) -> tuple[Decided | None, str]:
        try:
            return self._placements.decided(recorded), ""
        except Exception as error:  # noqa: BLE001 - as in a pass
            return None, _words(error)

    async def _end(self) -> None:
        """What would be said at the end of objects of which nothing was recorded."""
        for area in self._areas:
            await self._pass(area)
        for key, decided in sorted(self._world.decisions.of.items(), key=lambda row: [str(part) for part in row[0]]):
            if key not in self._recorded:
                self.outcome.add(decided.area, "only_now", DecidedTwice(self._clock.at_s, None, decided))


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, SubletError) else f"{type(error).__name__}: {error}"[:MAX_WHY]


def replay_decisions(
    recording: ClusterRecording, settings: KubernetesSettings, asked: Sequence[str] = ()
) -> DecisionsOutcome:
    """All recorded decisions beside those that are made anew; the same recording gives the same.

    Raises:
        Refused: what is `asked` is no path of the metrics API.
    """
    return asyncio.run(DecisionsReplay(recording, settings, asked).run())
