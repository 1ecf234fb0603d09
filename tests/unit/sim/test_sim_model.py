"""The pure model: who gets how much CPU, how counters and averages advance, whom the kernel kills."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.cpus.cpuset import CpuSet
from sublet.load.demand import BASE_BYTES, VM_BYTES, SimDemand, demand_of
from sublet.sim.model import ContainerDemand, Counters, Stall, ancestors, damp, out_of_memory, share_cpus

ONLINE = CpuSet.parse("0-7")


def want(
    group: str, threads: int, cpus: str = "0-7", limit: float | None = None, *, idle: bool = False
) -> ContainerDemand:
    return ContainerDemand(group, threads, CpuSet.parse(cpus), limit, idle)


def cores(*wants: ContainerDemand) -> dict[str, float]:
    return {group: round(share, 6) for group, share in share_cpus(wants, ONLINE).cores.items()}


@pytest.mark.parametrize(
    ("wants", "expected"),
    [
        pytest.param([], {}, id="nobody"),
        pytest.param([want("a", 0)], {"a": 0.0}, id="asleep"),
        pytest.param([want("a", 1)], {"a": 1.0}, id="one thread is one core"),
        pytest.param([want("a", 3, limit=2.0)], {"a": 2.0}, id="the limit caps usage"),
        pytest.param([want("a", 9, "1-2")], {"a": 2.0}, id="the cpuset caps usage"),
        pytest.param([want("a", 2, "0-1"), want("b", 8, idle=True)], {"a": 2.0, "b": 6.0}, id="tenants first"),
        pytest.param([want("a", 8), want("b", 8, idle=True)], {"a": 8.0, "b": 0.0}, id="idle work may starve"),
        pytest.param([want("a", 4, "0-3"), want("b", 4, "0-3")], {"a": 2.0, "b": 2.0}, id="equals share evenly"),
        pytest.param([want("a", 1, "8-9")], {"a": 0.0}, id="a set that is offline runs nothing"),
    ],
)
def test_cpus_are_shared_as_a_kernel_would(wants: list[ContainerDemand], expected: dict[str, float]) -> None:
    assert cores(*wants) == expected


WANTS = st.lists(
    st.builds(
        ContainerDemand,
        group=st.text("abcdefgh", min_size=1, max_size=3),
        threads=st.integers(0, 12),
        cpus=st.integers(0, 255).map(CpuSet),
        limit_cores=st.none() | st.floats(0.01, 10),
        idle=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda item: item.group,
)


@given(WANTS)
def test_nobody_exceeds_its_bounds_and_no_cpu_its_time(wants: list[ContainerDemand]) -> None:
    shares = share_cpus(wants, ONLINE)
    for item in wants:
        assert -1e-9 <= shares.cores[item.group] <= item.most_cores + 1e-6
    assert all(-1e-9 <= busy <= 1 + 1e-9 for busy in shares.busy.values())
    assert math.isclose(sum(shares.busy.values()), sum(shares.cores.values()), abs_tol=1e-6)


@given(WANTS)
def test_idle_class_work_never_takes_from_tenants(wants: list[ContainerDemand]) -> None:
    tenants = [item for item in wants if not item.idle]
    alone, together = share_cpus(tenants, ONLINE), share_cpus(wants, ONLINE)
    assert all(math.isclose(alone.cores[t.group], together.cores[t.group], abs_tol=1e-6) for t in tenants)


@given(WANTS, st.randoms())
def test_the_order_of_the_containers_does_not_matter(wants: list[ContainerDemand], random: "object") -> None:
    shuffled = list(wants)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert share_cpus(wants, ONLINE) == share_cpus(shuffled, ONLINE)


def test_a_limit_that_holds_work_back_counts_as_throttling() -> None:
    counters = Counters()
    counters.advance(cores=2.0, waiting=1.0, limited=True, has_limit=True, step_s=1.0)
    assert (counters.cpu_s, counters.periods, counters.throttled_periods) == (2.0, 10.0, 10.0)
    counters.advance(cores=1.0, waiting=0.0, limited=False, has_limit=True, step_s=1.0)
    assert (counters.cpu_s, counters.periods, counters.throttled_periods) == (3.0, 20.0, 10.0)


@pytest.mark.parametrize("steps", [1, 7, 60])
def test_a_damped_average_does_not_depend_on_the_step(steps: int) -> None:
    value = 1.0
    for _ in range(steps):
        value = damp(value, 3.0, 60 / steps, 60)
    assert value == pytest.approx(3 - 2 * math.exp(-1))


def test_a_stall_rises_and_fades() -> None:
    stall = Stall()
    stall.advance(1.0, 10)
    assert stall.avg10 == pytest.approx(100 * (1 - math.exp(-1)))
    assert stall.avg10 > stall.avg60 > stall.avg300 > 0
    risen, total = stall.avg10, stall.total_us
    stall.advance(0.0, 10)
    assert stall.avg10 < risen
    assert stall.total_us == total == 10_000_000


@pytest.mark.parametrize(
    ("used", "limits", "killed"),
    [
        pytest.param({"p/a": 5}, {}, [], id="no limit"),
        pytest.param({"p/a": 5}, {"p/a": 5}, [], id="exactly at the limit"),
        pytest.param({"p/a": 6}, {"p/a": 5}, ["p/a"], id="a container above its own"),
        pytest.param({"p/a": 3, "p/b": 4, "q/c": 9}, {"p": 5}, ["p/b"], id="a group: its largest member goes"),
        pytest.param({"p/a": 4, "p/b": 4, "p/c": 4}, {"p": 4}, ["p/a", "p/b"], id="until it fits, ties by name"),
        pytest.param({"p/a": 6, "p/b": 5}, {"p/a": 5, "p": 6}, ["p/a"], id="the inner group is judged first"),
    ],
)
def test_the_kernel_kills_the_largest_of_a_group_above_its_limit(
    used: dict[str, int], limits: dict[str, int], killed: list[str]
) -> None:
    assert out_of_memory(used, limits) == killed


def test_the_ancestors_of_a_group_end_with_the_root() -> None:
    assert list(ancestors("sublet/shared_cores/p1")) == ["sublet/shared_cores/p1", "sublet/shared_cores", "sublet", ""]


@pytest.mark.parametrize(
    ("command", "demand"),
    [
        pytest.param("", SimDemand(1, BASE_BYTES), id="no command"),
        pytest.param("ffmpeg -c copy", SimDemand(1, BASE_BYTES), id="any program"),
        pytest.param("stress -c 1", SimDemand(1, BASE_BYTES), id="the tutorial's pod"),
        pytest.param("/usr/bin/stress --cpu=40", SimDemand(40, BASE_BYTES), id="long form"),
        pytest.param("stress --vm 1 --vm-bytes 175G --vm-hang 1000 --verbose", SimDemand(0, BASE_BYTES + (175 << 30)),
                     id="the tutorial's memory hog"),
        pytest.param("stress -m 2", SimDemand(2, BASE_BYTES + 2 * VM_BYTES), id="memory workers are busy"),
    ],
)  # fmt: skip
def test_a_command_line_tells_the_demand(command: str, demand: SimDemand) -> None:
    assert demand_of(command.split()) == demand


@pytest.mark.parametrize("command", ["stress -c many", "stress -c", "stress -m 1 --vm-bytes lots"])
def test_a_stress_command_that_cannot_be_read_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match="stress"):
        demand_of(command.split())
