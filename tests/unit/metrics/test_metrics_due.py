"""What is not read in every pass: when it is due, how old its figures may get, and that nothing is lost meanwhile."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from present import present

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.core.figures.compute import SETTLED
from services.metrics.core.figures.figure import Damped, Gauge, OfferedFigures, OffersByKind, Rate, Total
from services.metrics.core.figures.results import LastPass, SourceReading, TargetReading
from services.metrics.core.figures.target import NODE, Target
from services.metrics.core.reads.gates import PAUSE_S, STILL_TIMES, Gate, LastRead, Moved, due, pause_ends_s, turn_of
from services.metrics.core.reads.target_cache import TargetCache
from services.metrics.core.sample.summary import summarise
from services.metrics.core.source import Source
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading

GATE = Gate(10.0, (Moved("used", 5),))
POD = Pod(uid="aa", name="web", containers=(Container(name="main"),))
CONTAINER = Target("container", "aa/main", "g/aa/main", "share")
POOL = Target("pool", "share", "g")


@pytest.mark.parametrize(
    ("last", "used", "now_s", "wanted"),
    [
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), 104, 2.0, (False, False), id="hardly moved"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), 105, 2.0, (True, True), id="moved"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), 95, 2.0, (True, True), id="moved back"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=True), 100, 2.0, (True, False), id="once more after a move"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), 101, 9.9, (False, False), id="not too old"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), 101, 10.0, (True, False), id="too old"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), 100, 19.9, (False, False), id="has stood still"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), 100, 20.0, (True, False), id="still, and too old"),
        pytest.param(LastRead(5.0, {"used": 100}, moving=False), 100, 2.0, (True, False), id="a clock that went back"),
        pytest.param(LastRead(0.0, {}, moving=False), 100, 2.0, (True, True), id="was not known"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), None, 2.0, (True, True), id="is not known"),
        pytest.param(LastRead(0.0, {"used": 100}, moving=False), float("nan"), 2.0, (True, True), id="is no number"),
        pytest.param(LastRead(0.0, {}, moving=False), None, 10.0, (True, True), id="was and is not known"),
    ],
)
def test_due(last: LastRead, used: float | None, now_s: float, wanted: tuple[bool, bool]) -> None:
    assert due(GATE, last, {} if used is None else {"used": used}, now_s, 1.0) == wanted


def test_where_nothing_is_watched_nothing_is_known_to_stand_still() -> None:
    gate, last = Gate(10.0, ()), LastRead(0.0, {}, moving=False)
    assert due(gate, last, {}, 9.9, 1.0) == (False, False)
    assert due(gate, last, {}, 10.0, 1.0) == (True, False)


PAUSED = Gate(30.0, (Moved("used", 5, jump=1000),), pause_s=8.0)
"""At a turn of 1 its stretches begin at 0, 8, 16 s."""


@pytest.mark.parametrize(
    ("last", "used", "now_s", "wanted"),
    [
        pytest.param(LastRead(9.0, {"used": 0}, moving=False), 5, 11.0, (True, True), id="begins to move"),
        pytest.param(LastRead(9.0, {"used": 0}, moving=True), 500, 11.0, (False, True), id="goes on moving"),
        pytest.param(LastRead(9.0, {"used": 0}, moving=True), 500, 15.9, (False, True), id="until the stretch ends"),
        pytest.param(LastRead(9.0, {"used": 0}, moving=True), 500, 16.0, (True, True), id="in the next stretch"),
        pytest.param(LastRead(9.0, {"used": 0}, moving=True), 0, 11.0, (False, False), id="came to rest"),
        pytest.param(LastRead(9.0, {"used": 0}, moving=True), 0, 16.0, (True, False), id="once more of the rest"),
        pytest.param(LastRead(9.0, {"used": 0}, moving=False), 0, 16.0, (False, False), id="rests"),
        pytest.param(LastRead(9.0, {"used": 0}, moving=True), 1000, 11.0, (True, True), id="a jump"),
        pytest.param(LastRead(9.0, {"used": 2000}, moving=True), 1000, 11.0, (True, True), id="a jump back"),
        pytest.param(LastRead(9.0, {"used": 0}, True, first=True), 0, 11.0, (True, False), id="no rate yet"),
        pytest.param(LastRead(9.0, {"used": 0}, moving=True), 0, 8.0, (True, False), id="a clock that went back"),
    ],
)
def test_what_goes_on_moving_pauses(last: LastRead, used: float, now_s: float, wanted: tuple[bool, bool]) -> None:
    assert due(PAUSED, last, {"used": used}, now_s, 1.0) == wanted


TWO = Gate(30.0, (Moved("used", 5), Moved("held", 5, jump=1000)), pause_s=8.0)
"""Of two values the second knows a jump, as with CPU time and memory."""


@pytest.mark.parametrize(
    ("last", "now", "now_s", "wanted"),
    [
        pytest.param(LastRead(9.0, {"used": 0, "held": 0}, False), (5, 0), 11.0, (True, True), id="the first moves"),
        pytest.param(LastRead(9.0, {"used": 0, "held": 0}, False), (0, 5), 11.0, (True, True), id="the second moves"),
        pytest.param(LastRead(9.0, {"used": 0, "held": 0}, True), (1000, 5), 11.0, (False, True), id="no jump"),
        pytest.param(LastRead(9.0, {"used": 0, "held": 0}, True), (0, 1000), 11.0, (True, True), id="a jump"),
        pytest.param(LastRead(9.0, {"used": 0, "held": 0}, False), (1, 0), 39.0, (True, False), id="one is not still"),
        pytest.param(LastRead(9.0, {"used": 0, "held": 0}, False), (0, 0), 39.0, (False, False), id="both are still"),
    ],
)
def test_one_of_two_watched_values_is_enough(
    last: LastRead, now: tuple[int, int], now_s: float, wanted: tuple[bool, bool]
) -> None:
    watched, cache = {"used": now[0], "held": now[1]}, TargetCache(1, 1.0)
    assert due(TWO, last, watched, now_s, 1.0) == wanted
    # As the second reading: of the first the rate is not known yet.
    for _ in range(2):
        cache.store("dear", TWO, SourceReading(last.at_s, {}), (last.watched, last.moving))
    assert (cache.still_valid("dear", TWO, watched, now_s)[0] is None) is wanted[0]


def test_pauses_of_targets_that_began_together_end_in_different_passes() -> None:
    turns = [turn_of(Target("container", f"{n}/main")) for n in range(400)]
    ends = [pause_ends_s(PAUSED, 100.0, turn) for turn in turns]
    passes = [sum(at_s < end <= at_s + 2 for end in ends) for at_s in (100, 102, 104, 106)]
    assert sum(passes) == 400, "nobody waits for longer than the pause"
    assert max(passes) < 2 * min(passes)


def test_targets_take_turns_that_never_change() -> None:
    turns = [turn_of(Target("container", f"{n}/main")) for n in range(100)]
    assert all(0.5 <= turn <= 1 for turn in turns)
    assert len(set(turns)) == 100
    assert turns == [turn_of(Target("container", f"{n}/main")) for n in range(100)]


class Machine:
    """A host whose one container has a counter that is read in every pass and tasks behind a gate."""

    def __init__(
        self,
        every_s: float = 10.0,
        step: float = 5.0,
        pause_s: float = 0.0,
        batch_pause_s: float = 0.0,
        pool: str = "share",
    ) -> None:
        self.now_s, self.used, self.tasks, self.number = 0.0, 0, 0, 1
        self.numbers: Mapping[str, int] | None = None
        """The identities of targets by their kind; None: all have `number`."""
        self.reads, self.uncounted = 0, ""
        self.broken = self.silent = False
        cheap = (Rate("cpu_usage_cores", of="used", scale=0.01),)
        dear = (Gauge("runnable_tasks"), Damped("load1", of="tasks", period_s=60.0))
        gate = Gate(every_s, (Moved("used", step),), pause_s, batch_pause_s=batch_pause_s)
        total = (Total("runnable_tasks"), Total("load1"))
        sources = {
            "cheap": Source({"container": cheap, "pool": cheap}, self._cheap),
            "dear": Source({"container": dear, "pool": total}, self._dear, gates={"container": gate}),
            "node": Source({"node": (Gauge("online_cpus"),)}, lambda host, target: {"online_cpus": "0-511"}),
        }
        targets = [NODE, POOL, CONTAINER._replace(pool=pool)]
        self.collector = Collector(cast("HostReader", self), sources, lambda pods: targets, lambda: self.now_s)
        self.memory = LastPass()

    def begin(self, targets: object) -> None:
        """A pass."""

    def identity(self, target: Target) -> int | None:
        return self.number if self.numbers is None else self.numbers.get(target.kind)

    def _cheap(self, host: object, target: Target) -> Mapping[str, int]:
        if self.silent:
            raise OSError("cannot be read")
        return {"used": self.used}

    def _dear(self, host: object, target: Target) -> Mapping[str, int]:
        self.reads += 1
        if self.broken:
            raise ValueError("garbled")
        return {"tasks": self.tasks, "runnable_tasks": self.tasks}

    def sample(self, after_s: float = 2.0, *, whole: bool = False) -> Mapping[str, Any]:
        """The fields of a sample some time after the last one."""
        self.now_s += after_s
        collected = self.collector.collect([POD], whole=whole)
        fields, self.memory = summarise(self.memory, collected.readings, self.collector.offered, [POD], self.now_s)
        return fields


def of_container(fields: Mapping[str, Any]) -> ContainerReading:
    container: ContainerReading = fields["pods"][0].containers[0]
    return container


def test_a_container_at_rest_is_looked_into_seldom_and_says_how_old_its_figures_are() -> None:
    machine = Machine()
    samples = [machine.sample() for _ in range(40)]
    assert machine.reads <= 2 + 40 * 2 / 10, "not earlier than after half of twenty seconds"
    ages = [fields["figure_ages_s"].get("runnable_tasks", 0.0) for fields in samples]
    assert 10.0 < max(ages) < 20.0
    assert of_container(samples[-1]).runnable_tasks == 0


def test_what_moves_is_read_at_once() -> None:
    machine = Machine()
    for _ in range(10):
        machine.sample()
    machine.used, machine.tasks = 100, 3
    fields = machine.sample()
    assert (of_container(fields).runnable_tasks, fields["pools"][0].runnable_tasks) == (3, 3)
    assert "runnable_tasks" not in fields["figure_ages_s"]
    machine.tasks = 0
    assert of_container(machine.sample()).runnable_tasks == 0, "and once more when it has come to rest"


def test_what_works_without_end_is_looked_into_once_a_pause_and_in_every_whole_pass() -> None:
    machine = Machine(every_s=30.0, pause_s=PAUSE_S)
    ages = []
    for tasks in range(40):
        machine.used, machine.tasks = machine.used + 100, tasks
        ages.append(machine.sample()["figure_ages_s"].get("runnable_tasks", 0.0))
    assert machine.reads <= 2 + 40 * 2 / PAUSE_S
    assert 0 < max(ages) < PAUSE_S, "and says how old it is"
    machine.used, machine.tasks = machine.used + 100, 77
    fields = machine.sample(0.1, whole=True)
    assert (of_container(fields).runnable_tasks, fields["figure_ages_s"]) == (77, {})


@pytest.mark.parametrize(("pool", "most"), [("share", 41), ("reclaim", 2 + 40 * 2 / PAUSE_S)])
def test_what_batch_work_waits_for_is_read_once_a_pause_and_what_tenants_wait_for_in_every_pass(
    pool: str, most: float
) -> None:
    machine = Machine(every_s=30.0, batch_pause_s=PAUSE_S, pool=pool)
    for tasks in range(40):
        machine.used, machine.tasks = machine.used + 100, tasks
        machine.sample()
    assert most / 2 < machine.reads <= most


def test_what_has_come_to_rest_in_a_pause_is_read_once_more_when_it_ends() -> None:
    machine = Machine(every_s=1000.0, pause_s=PAUSE_S)
    for tasks in range(20):
        machine.used, machine.tasks = machine.used + 100, tasks
        machine.sample()
    machine.tasks = 0
    last = [of_container(machine.sample()).runnable_tasks for _ in range(5)][-1]
    assert last == 0


def test_a_cgroup_made_anew_inherits_nothing_that_was_carried_over() -> None:
    machine = Machine()
    machine.tasks = 7
    for _ in range(10):
        machine.sample()
    machine.number, machine.tasks = 2, 1
    container = of_container(machine.sample())
    assert (container.runnable_tasks, container.load1, container.cpu_usage_cores) == (1, None, None)


def test_a_dear_source_that_fails_leaves_no_old_figures_and_no_half_total() -> None:
    machine = Machine()
    machine.tasks = 7
    for _ in range(10):
        machine.sample()
    machine.broken, machine.used = True, 100
    fields = machine.sample()
    assert of_container(fields).runnable_tasks is fields["pools"][0].runnable_tasks is None
    machine.broken = False
    assert machine.sample()["pools"][0].runnable_tasks == 7


def test_a_total_of_which_a_part_has_failed_is_not_known() -> None:
    offered: OffersByKind = {
        "node": {"node": OfferedFigures.of([Gauge("online_cpus")])},
        "pool": {"dear": OfferedFigures.of([Total("runnable_tasks")])},
        "container": {"dear": OfferedFigures.of([Gauge("runnable_tasks")])},
    }
    other = Target("container", "bb/main", "g/bb/main", "share")

    def total(parts: Mapping[str, SourceReading]) -> list[int | None]:
        readings = {
            NODE: TargetReading(0.0, {"node": SourceReading(0.0, {"online_cpus": "0-3"})}),
            POOL: TargetReading(0.0, {}),
            CONTAINER: TargetReading(0.0, {"dear": SourceReading(0.0, {"runnable_tasks": 3})}),
            other: TargetReading(0.0, parts),
        }
        fields, _ = summarise(LastPass(), readings, offered, [], 0.0)
        return [pool.runnable_tasks for pool in fields["pools"]]

    assert total({"dear": SourceReading(0.0, {"runnable_tasks": 4})}) == [7]
    assert total({"dear": SourceReading(0.0, {})}) == [3], "its tasks cannot be listed any more: it is ending"
    assert total({}) == []


def test_a_cheap_source_that_fails_leaves_no_old_figures_of_a_container_at_rest() -> None:
    machine = Machine()
    for _ in range(4):
        assert of_container(machine.sample()).cpu_usage_cores in (None, 0.0)
    machine.silent = True
    assert of_container(machine.sample()).cpu_usage_cores is None


def test_a_pool_without_containers_has_no_load_and_one_whose_containers_are_all_new_has_an_unknown_one() -> None:
    machine = Machine()
    first, second = machine.sample(), machine.sample()
    assert (first["pools"][0].load1, second["pools"][0].load1) == (None, 0.0)
    machine.numbers = {"pool": 1}
    assert machine.sample()["pools"][0].load1 == 0


STEPS = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 3, 400]), st.sampled_from([0.1, 2.0, 2.0, 7.0])), max_size=30)


@given(STEPS)
def test_over_any_rest_the_rates_add_up_to_the_counter(steps: list[tuple[int, float]]) -> None:
    machine, used = Machine(), 0.0
    machine.sample()
    for growth, after_s in steps:
        machine.used += growth
        used += present(of_container(machine.sample(after_s)).cpu_usage_cores) * after_s
    assert used == pytest.approx(machine.used * 0.01)


@given(STEPS, st.floats(0.5, 60), st.sampled_from([0.0, PAUSE_S, 100.0]))
def test_no_carried_figure_is_older_than_its_source_declares(
    steps: list[tuple[int, float]], every_s: float, pause_s: float
) -> None:
    machine = Machine(every_s=every_s, pause_s=pause_s)
    for growth, after_s in steps:
        machine.used += growth
        still = growth == 0
        longest_s = STILL_TIMES * every_s if still else every_s
        assert all(age_s < longest_s for age_s in machine.sample(after_s)["figure_ages_s"].values())


@example([(0, 2.0)] * 3 + [(4, 2.0)])
@example([(0, 2.0)] * 5 + [(4, 2.0)] * 2 + [(0, 600.0)] * 3 + [(4, 2.0)])
@given(st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 4]), st.sampled_from([2.0, 2.0, 0.1, 600.0])), max_size=40))
def test_the_load_that_is_told_is_the_load_that_is(steps: list[tuple[int, float]]) -> None:
    """Where every change of the count moves the counter, the gate changes the average by what has settled at most."""
    gated, always = Machine(), Machine(step=0.0)
    before = 0
    for tasks, after_s in steps:
        for machine in (gated, always):
            machine.used += 100 * (tasks != before)
            machine.tasks = tasks
        loads = [of_container(machine.sample(after_s)).load1 for machine in (gated, always)]
        assert loads[0] == loads[1] or abs(present(loads[0]) - present(loads[1])) <= SETTLED
        before = tasks
