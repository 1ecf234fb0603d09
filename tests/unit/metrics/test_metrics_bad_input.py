"""Files that say nonsense, counters that go back, clocks that jump: nothing wrong is published, and it is named."""

import itertools
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_trees import KernelTree, put

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LocalTargets
from services.metrics.core.figures.figure import (
    BusyCpus,
    Damped,
    Figure,
    Gauge,
    OfferedFigures,
    OffersByKind,
    Rate,
    Ratio,
)
from services.metrics.core.figures.results import LastPass, SourceReading, TargetReading
from services.metrics.core.figures.target import NODE, TENANTS
from services.metrics.core.figures.values import CpuTicks, FigureOutcome, Point
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import CpuUsage, NodeSample
from shared.core.cgroups.layout import container_group
from shared.errors import SubletError

POD = Pod(uid="aa", name="web", containers=(Container(name="main"),))
GARBAGE = ("", "\n", "soon\n", "-1\n", "nan\n", "some avg10=nan avg60=x\n", "cpu  1 2\ncpu0 1\n", "1 2 3 4 5 6 7 8 9\n",
           "total -5\n", "9" * 400 + "\n", "\0\0\0", "Node 0, zone x\n  min q\n", "eth0: 1\n")  # fmt: skip


def plant(version: int, root: Path) -> KernelTree:
    """A host with one pod."""
    tree = KernelTree(root, version)
    tree.machine(cpus=4, numas=2)
    tree.node()
    tree.group(container_group(POD, "main"), usage_ns=5, tids=tree.tasks("RS"))
    return tree


def passes(tree: KernelTree, times: int) -> tuple[list[NodeSample], dict[str, str]]:
    """Some samples, and what failed."""
    now_s = [0.0]
    host = HostReader(tree.root, Cgroups(tree.root))
    collector = Collector(host, known_sources(), LocalTargets(tree.root), lambda: now_s[0])
    memory = LastPass()
    samples: list[NodeSample] = []
    failures: dict[str, str] = {}
    pods = [POD]
    for _ in range(times):
        now_s[0] += 2.0
        collected = collector.collect(pods)
        failures |= collected.failures
        fields, memory = summarise(memory, collected.readings, collector.offered, pods, now_s[0])
        fields["sent_at"] = datetime.now(UTC)
        samples.append(NodeSample(node="n", boot_id="0" * 8, seq=1, **fields))
    return samples, {**failures, **memory.rejected}


def attempt(tree: KernelTree) -> list[NodeSample] | SubletError:
    """The samples, or why there is none."""
    try:
        return passes(tree, 2)[0]
    except SubletError as error:
        return error


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_nonsense_spoils_its_own_figures_only(tmp_path: Path, version: int) -> None:
    tree = plant(version, tmp_path)
    files = {path.name: path for path in sorted(tmp_path.rglob("*")) if path.is_file() and "cpu/cpu" not in str(path)}
    for spoiled, garbage in itertools.product(files.values(), GARBAGE):
        right = spoiled.read_text()
        spoiled.write_text(garbage)
        outcome = attempt(tree)
        spoiled.write_text(right)
        if isinstance(outcome, SubletError):
            assert spoiled.name == "online", f"{spoiled} as {garbage!r}: {outcome}"
            assert "online" in str(outcome)
            continue
        for sample in outcome:
            assert NodeSample.decode(sample.encode()).node_reading.online_cpus == "0-3"


@pytest.mark.parametrize(
    ("file", "text", "source"),
    [
        pytest.param("proc/schedstat", "cpu0 1 2\n", "sched_wait", id="a line too short"),
        pytest.param("proc/diskstats", "254 0 vda a b c d e f g h\n", "disk", id="no numbers"),
        pytest.param("proc/1/net/dev", "eth0: 1 2\n", "network", id="too few columns"),
        pytest.param("proc/pressure/io", "some avg10=x\n", "pressure", id="no number"),
        pytest.param("sys/devices/system/node/node0/cpulist", "0-\n", "numa", id="no list of CPUs"),
    ],
)
def test_a_malformed_file_is_named_by_its_source(tmp_path: Path, file: str, text: str, source: str) -> None:
    tree = plant(1, tmp_path)
    put(tree.root / file, text)
    _, failures = passes(tree, 1)
    assert list(failures) == [source]


def test_a_machine_whose_time_stands_still_has_no_usage_and_says_so(tmp_path: Path) -> None:
    samples, failures = passes(plant(2, tmp_path), 3)
    reading = samples[-1].node_reading
    assert (reading.cpu_usage_cores, reading.cpus) == (None, None)
    assert failures["node: cpu_usage_cores"] == "cpu_all_ticks stands still at 901800"
    assert "no CPU has grown" in failures["node: cpus"]


def test_a_numa_node_without_a_metric_has_none_and_the_others_have_theirs(tmp_path: Path) -> None:
    tree = plant(1, tmp_path)
    (tree.root / "sys/devices/system/node/node1/meminfo").unlink()
    put(tree.root / "proc/zoneinfo", "Node 0, zone   Normal\n        min      1\n        low      2\n")
    (sample,), failures = passes(tree, 1)
    zero, one = sample.numas
    assert (one.memory_free_bytes, one.watermark_low_bytes, one.cpus) == (None, None, "1,3")
    assert None not in (zero.memory_free_bytes, zero.watermark_low_bytes)
    assert zero.watermark_high_bytes is None
    assert not failures


@pytest.mark.parametrize(("cores", "told"), [(6.0, 6.0), (6.1, None), (1e9, None)])
def test_usage_of_more_cpus_than_there_are_is_not_believed(cores: float, told: float | None) -> None:
    offered: OffersByKind = {
        "node": {"all": OfferedFigures.of([Gauge("online_cpus")])},
        "pool": {"all": OfferedFigures.of([Rate("cpu_usage_cores", of="used")])},
    }
    memory = LastPass()
    for now_s, used in ((0.0, 0.0), (2.0, cores * 2)):
        readings = {
            NODE: TargetReading(now_s, {"all": SourceReading(now_s, {"online_cpus": "0-3"})}),
            TENANTS: TargetReading(now_s, {"all": SourceReading(now_s, {"used": used})}),
        }
        fields, memory = summarise(memory, readings, offered, [], now_s)
    assert [pool.cpu_usage_cores for pool in fields["pools"]] == ([told] if told else [])
    assert list(memory.rejected) == ([] if told else ["pool share: cpu_usage_cores"])


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("figure", [Rate("f", of="c"), Ratio("f", of="c", over="d"), Damped("f", of="c", period_s=60)])
def test_a_counter_that_is_no_number_is_named(figure: Figure, value: float) -> None:
    outcome = figure.compute({"c": value, "d": 5}, 2.0, {"c": Point(1, 0.0), "d": Point(1, 0.0)})
    assert outcome.value is None
    assert "c is" in outcome.rejected


def test_a_clock_that_went_back_gives_no_rate_and_counts_again_from_there() -> None:
    figure = Rate("f", of="c")
    outcome = figure.compute({"c": 9}, 1.0, {"c": Point(1, 5.0)})
    assert (outcome.value, outcome.rejected) == (None, "the clock went back by 4.0 s")
    assert figure.compute({"c": 13}, 3.0, outcome.points).value == 2.0


def test_a_clock_that_jumped_ahead_gives_the_average_over_that_time_and_says_how_long_it_was() -> None:
    offered: OffersByKind = {
        "node": {"all": OfferedFigures.of([Gauge("online_cpus"), Rate("cpu_usage_cores", of="used")])}
    }
    memory = LastPass()
    for now_s, used in ((0.0, 0), (3600.0, 7200)):
        reading = TargetReading(now_s, {"all": SourceReading(now_s, {"online_cpus": "0-3", "used": used})})
        fields, memory = summarise(memory, {NODE: reading}, offered, [], now_s)
    assert (fields["window_s"], fields["node_reading"].cpu_usage_cores) == (3600.0, 2.0)


CPUS = BusyCpus("cpus", of="ticks")


def cpus_between(before: CpuTicks, now: CpuTicks) -> FigureOutcome:
    known = CPUS.compute({"ticks": before}, 0.0, {})
    assert known.value is None
    return CPUS.compute({"ticks": now}, 2.0, known.points)


@pytest.mark.parametrize(
    ("before", "now", "busy"),
    [
        pytest.param(
            CpuTicks((0, 1), (0, 0), (0, 0)), CpuTicks((0, 1), (50, 0), (200, 200)), {0: 25, 1: 0}, id="plain"
        ),
        pytest.param(
            CpuTicks((0, 1), (5, 5), (9, 9)), CpuTicks((0, 2), (10, 5), (19, 19)), {0: 50}, id="a CPU came, one went"
        ),
        pytest.param(CpuTicks((0, 1), (5, 5), (9, 9)), CpuTicks((0, 1), (0, 6), (19, 19)), {1: 10}, id="one went back"),
        pytest.param(
            CpuTicks((0, 1), (5, 5), (9, 9)), CpuTicks((0, 1), (5, 6), (9, 19)), {1: 10}, id="one stood still"
        ),
        pytest.param(CpuTicks((0,), (0,), (0,)), CpuTicks((0,), (30,), (20,)), {0: 100}, id="never more than all"),
    ],
)
def test_how_busy_each_cpu_is(before: CpuTicks, now: CpuTicks, busy: dict[int, int]) -> None:
    usage = cpus_between(before, now).value
    assert isinstance(usage, CpuUsage)
    assert usage.by_cpu() == busy


def test_cpus_whose_time_has_not_grown_are_unknown_and_named() -> None:
    ticks = CpuTicks((0, 1), (5, 5), (9, 9))
    outcome = cpus_between(ticks, ticks)
    assert (outcome.value, bool(outcome.rejected)) == (None, True)


@given(st.dictionaries(st.integers(0, 600), st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1))
def test_each_cpu_has_its_own_share(growth: dict[int, tuple[int, int]]) -> None:
    cpus = tuple(sorted(growth))
    before = CpuTicks(cpus, (7,) * len(cpus), (9,) * len(cpus))
    now = CpuTicks(
        cpus,
        tuple(7 + growth[cpu][0] for cpu in cpus),
        tuple(9 + sum(growth[cpu]) for cpu in cpus),
    )
    value = cpus_between(before, now).value
    wanted = {cpu: round(100 * busy / (busy + idle)) for cpu, (busy, idle) in growth.items() if busy + idle}
    assert value is None or isinstance(value, CpuUsage)
    assert (value.by_cpu() if value else {}) == wanted
