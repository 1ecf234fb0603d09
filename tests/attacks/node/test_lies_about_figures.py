"""A node says figures of another one's pods, of no pod at all, of the future, of more series than there is room for, or
without an end: others' answers stay as they were, and it is counted.
"""

from datetime import timedelta
from typing import Any

import pytest

from services.central.core.custom_metrics.cluster_objects import MeteredSeen
from services.central.core.custom_metrics.query import AskedMetric, MetricView, items_of, read_query
from services.central.core.custom_metrics.series import MeteredObject
from services.central.core.custom_metrics.store import MetricStore, StoreBounds
from services.central.custom_metrics.answers import wall_ms
from services.central.custom_metrics.intake import BOUNDS, FiguresIntake
from services.central.custom_metrics.mirrors import MetricsMirrors
from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.figures import MAX_SERIES, FiguredPods, PodFigures
from shared.fakes.memory_objects import MemoryObjects
from shared.ports import Received

VICTIM, OWN = MeteredObject("pods", "d", "victim"), MeteredObject("pods", "d", "own")
ROOM = StoreBounds(series=400, samples=4000, series_of_object=100)


class Scene:
    """The door for messages, with an honest node, whose pod is the victim, and a thief."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        mirrors = MetricsMirrors(MemoryObjects(self.clock))
        for number, (about, node) in enumerate(((VICTIM, "honest"), (OWN, "thief"))):
            mirrors._index(str(number), MeteredSeen(about, node, {}))
        self.store = MetricStore(300, mirrors.labels, ROOM)
        self.intake = FiguresIntake(self.store, mirrors, self.clock)
        self.seq = 0

    def hear(self, node: str, *, subject: str = "", ahead_s: float = 0.0, **said: Any) -> None:
        self.seq += 1
        now = self.clock.wall() + timedelta(seconds=ahead_s)
        figures = PodFigures(node=node, boot_id="0123456789abcdef", seq=self.seq, sent_at=now, measured_at=now,
                             period_s=15.0, **said)  # fmt: skip
        self.intake._messages.hear(Received(state_subject(PodFigures, subject or node), figures.encode()))

    def value(self, metric: str = "pod_cpu_usage") -> float | None:
        """What is answered about the victim."""
        query = read_query(AskedMetric(metric, "d", "pods", "victim"))
        fresh_from_ms = wall_ms(self.clock) - 40_000
        return next((one.value for one in items_of(query, MetricView(self.store.index, None, fresh_from_ms))), None)


def pods(name: str, value: float, *series: str) -> FiguredPods:
    return FiguredPods(uids=("a1",), namespaces=("d",), names=(name,),
                       series=dict.fromkeys(series or ("pod_cpu_usage",), (value,)))  # fmt: skip


@pytest.fixture
def scene() -> Scene:
    """The honest node has spoken."""
    found = Scene()
    found.hear("honest", pods=pods("victim", 0.5))
    assert found.value() == 0.5
    return found


def test_another_ones_pods_are_not_a_nodes_to_speak_of(scene: Scene) -> None:
    scene.hear("thief", pods=pods("victim", 900.0))
    scene.hear("thief", subject="honest", pods=pods("victim", 900.0))
    scene.hear("honest", subject="thief", pods=pods("victim", 900.0))
    assert scene.value() == 0.5


def test_pods_that_nobody_has_take_no_room(scene: Scene) -> None:
    before = scene.store.series
    scene.hear("thief", pods=pods("nobody", 1.0))
    assert scene.store.series == before


def test_a_clock_far_ahead_makes_no_value_the_newest_for_ever(scene: Scene) -> None:
    scene.hear("honest", ahead_s=86_400 * 365, pods=pods("victim", 900.0))
    newest_ms = max(one.newest()[0] for table in scene.store.index.tables()
                    for own in scene.store.index.objects(table).values() for one in own.values())  # fmt: skip
    assert newest_ms <= wall_ms(scene.clock)


def test_names_without_end_take_the_thiefs_own_room_alone(scene: Scene) -> None:
    for turn in range(BOUNDS.burst):
        names = (f"invented_{turn}_{number}" for number in range(MAX_SERIES))
        scene.hear("thief", pods=pods("own", 1.0, *names))
    assert scene.store.series <= ROOM.series_of_object + 1
    scene.hear("honest", pods=pods("victim", 0.7, "pod_memory_usage"))
    assert scene.value("pod_memory_usage") == 0.7


def test_a_flood_is_cut_off_before_it_is_read(scene: Scene) -> None:
    for _ in range(1000):
        scene.hear("thief", pods=pods("own", 1.0))
    assert scene.store.samples <= BOUNDS.burst + 2
    scene.hear("honest", pods=pods("victim", 0.7, "pod_memory_usage"))
    assert scene.value("pod_memory_usage") == 0.7
