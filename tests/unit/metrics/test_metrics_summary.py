"""From raw readings to figures: laws over all counters, and the cases that must not become spikes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.metrics.core.figures.compute import figures
from services.metrics.core.figures.figure import Damped, Gauge, OfferedFigures, OffersByKind, Rate, Ratio
from services.metrics.core.figures.results import LastPass, SourceReading, TargetReading
from services.metrics.core.figures.target import NODE, TENANTS, Target
from services.metrics.core.figures.values import Point
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeSample
from shared.errors import Unavailable

GROUP = (
    Rate("cpu_usage_cores", of="cpu_usage_ns", scale=1e-9),
    Ratio("throttled_ratio", of="nr_throttled", over="nr_periods"),
    Gauge("runnable_tasks"),
    Gauge("memory_usage_bytes"),
    Damped("load1", of="loaded_tasks", period_s=60.0),
    Damped("load5", of="loaded_tasks", period_s=300.0),
    Gauge("novelty"),
)
OFFERED: OffersByKind = {
    "node": {"all": OfferedFigures.of((Gauge("online_cpus"), Gauge("load1")))},
    "pool": {"all": OfferedFigures.of(GROUP)},
    "container": {"all": OfferedFigures.of(GROUP)},
}
POD = Pod(uid="aa", name="web", containers=(Container(name="main"),))
CONTAINER = Target("container", "aa/main", "sublet/shared_cores/podaa/main")


def reading(at_s: float, raw: dict[str, Any], identity: int = 0) -> TargetReading:
    """A reading by one source."""
    return TargetReading(at_s, {"all": SourceReading(at_s, raw)}, identity)


def run(
    steps: Sequence[dict[str, Any] | None],
    *,
    target: Target = CONTAINER,
    identities: Sequence[int] = (),
    every_s: float = 2.0,
) -> list[Mapping[str, Any]]:
    """Summaries of one target whose raw values change from pass to pass; None in a step: its cgroup is gone."""
    memory = LastPass()
    summaries: list[Mapping[str, Any]] = []
    for number, raw in enumerate(steps):
        now_s = number * every_s
        readings = {NODE: reading(now_s, {"online_cpus": "0-3"})}
        if raw is not None:
            identity = identities[number] if identities else 1
            readings[target] = reading(now_s, raw, identity)
        fields, memory = summarise(memory, readings, OFFERED, [POD], now_s)
        summaries.append(fields)
    return summaries


def of_container(fields: Mapping[str, Any]) -> ContainerReading:
    container: ContainerReading = fields["pods"][0].containers[0]
    return container


def test_a_rate_needs_two_points() -> None:
    first, second = run([{"cpu_usage_ns": 10**9}, {"cpu_usage_ns": 4 * 10**9}])
    assert (first["window_s"], of_container(first).cpu_usage_cores) == (None, None)
    assert (second["window_s"], of_container(second).cpu_usage_cores) == (2.0, 1.5)


def test_a_counter_that_went_back_gives_no_figure_and_counts_again_from_there() -> None:
    figures = run([{"cpu_usage_ns": 9 * 10**9}, {"cpu_usage_ns": 10**9}, {"cpu_usage_ns": 3 * 10**9}])
    assert [of_container(f).cpu_usage_cores for f in figures] == [None, None, 1.0]


def test_a_counter_that_went_back_is_never_a_negative_rate() -> None:
    past = {"cpu_usage_ns": Point(100.0, 0.0)}
    why = "cpu_usage_ns went back from 100 to 40"
    assert GROUP[0].compute({"cpu_usage_ns": 40}, 2.0, past) == (None, {"cpu_usage_ns": Point(40, 2.0)}, why)


def test_a_cgroup_made_anew_gives_no_figure_even_when_its_counter_is_already_higher() -> None:
    steps = [{"cpu_usage_ns": 10**9, "loaded_tasks": 4}, {"cpu_usage_ns": 2 * 10**9, "loaded_tasks": 4}]
    figures = run([*steps, {"cpu_usage_ns": 90 * 10**9, "loaded_tasks": 4}], identities=[7, 7, 8])
    assert of_container(figures[1]).cpu_usage_cores == 0.5
    assert (of_container(figures[2]).cpu_usage_cores, of_container(figures[2]).load1) == (None, None)


def test_a_cgroup_that_was_away_for_a_pass_begins_anew() -> None:
    figures = run([{"cpu_usage_ns": 10**9}, None, {"cpu_usage_ns": 9 * 10**9}, {"cpu_usage_ns": 10 * 10**9}])
    assert [of_container(f).cpu_usage_cores for f in figures] == [None, None, None, 0.5]


def test_a_missing_figure_is_absent_and_not_zero() -> None:
    _, second = run([{"memory_usage_bytes": 5}, {"memory_usage_bytes": 5}])
    container = of_container(second)
    assert container.memory_usage_bytes == 5
    assert container.cpu_usage_cores is container.load1 is container.throttled_ratio is container.runnable_tasks is None


@pytest.mark.parametrize(
    ("before", "now", "ratio"),
    [
        pytest.param((5, 10), (7, 20), 0.2, id="a fifth of the periods"),
        pytest.param((0, 0), (0, 0), 0.0, id="no quota: nothing was throttled"),
        pytest.param((5, 10), (0, 20), None, id="throttled went back"),
        pytest.param((5, 10), (6, 2), None, id="periods went back"),
        pytest.param((5, 10), (2, 4), None, id="both went back"),
        pytest.param((5, 10), (6, 10), None, id="throttled in no period"),
    ],
)
def test_throttled_ratio(before: tuple[int, int], now: tuple[int, int], ratio: float | None) -> None:
    steps = [{"nr_throttled": throttled, "nr_periods": periods} for throttled, periods in (before, now)]
    assert of_container(run(steps)[1]).throttled_ratio == ratio


def test_load_is_damped_over_one_and_five_minutes_from_zero_on() -> None:
    figures = run([{"loaded_tasks": 4}] * 31)  # a minute at four tasks
    last = of_container(figures[-1])
    assert last.load1 == pytest.approx(4 * (1 - math.exp(-1)))
    assert last.load5 == pytest.approx(4 * (1 - math.exp(-0.2)))
    assert of_container(figures[0]).load1 is None


def test_load_does_not_depend_on_how_often_it_is_counted() -> None:
    slow, quick = run([{"loaded_tasks": 3}] * 3, every_s=10.0), run([{"loaded_tasks": 3}] * 201, every_s=0.1)
    assert of_container(slow[-1]).load1 == pytest.approx(of_container(quick[-1]).load1)


def test_load_outlives_a_pass_without_a_count() -> None:
    figures = run([{"loaded_tasks": 4}, {"loaded_tasks": 4}, {}, {"loaded_tasks": 4}])
    assert of_container(figures[2]).load1 is None
    assert of_container(figures[3]).load1 == pytest.approx(4 * (1 - math.exp(-0.1)))


def test_a_rate_can_be_based_on_a_later_point() -> None:
    memory = LastPass()
    node = reading(0.0, {"online_cpus": "0-3"})
    _, memory = summarise(memory, {NODE: node, TENANTS: reading(0.0, {"cpu_usage_ns": 0}, 1)}, OFFERED, [], 0.0)
    based = memory.based_on(TENANTS, "cpu_usage_ns", Point(1e9, 1.9))
    now = {NODE: node, TENANTS: reading(2.0, {"cpu_usage_ns": 1.2e9}, 1)}
    plain, shown = (summarise(m, now, OFFERED, [], 2.0)[0]["pools"][0].cpu_usage_cores for m in (memory, based))
    assert (plain, shown) == (pytest.approx(0.6), pytest.approx(2.0))


@pytest.mark.parametrize(
    ("target", "counter", "point"),
    [
        pytest.param(CONTAINER, "cpu_usage_ns", Point(1e9, 1.0), id="unknown target"),
        pytest.param(TENANTS, "other", Point(1e9, 1.0), id="unknown counter"),
        pytest.param(TENANTS, "cpu_usage_ns", Point(1e9, -1.0), id="older than the last pass"),
        pytest.param(TENANTS, "cpu_usage_ns", Point(1.0, 1.0), id="counter went back"),
    ],
)
def test_a_point_that_does_not_fit_is_not_taken_as_the_base(target: Target, counter: str, point: Point) -> None:
    node = reading(0.0, {"online_cpus": "0-3"})
    tenants = reading(0.0, {"cpu_usage_ns": 100}, 1)
    _, memory = summarise(LastPass(), {NODE: node, TENANTS: tenants}, OFFERED, [], 0.0)
    assert memory.based_on(target, counter, point) is memory


def test_unknown_figures_land_in_extra() -> None:
    assert of_container(run([{"novelty": 3.5}])[0]).extra == {"novelty": 3.5}


def test_a_pool_without_a_cgroup_is_left_out_and_a_container_without_one_is_listed() -> None:
    fields = run([None])[0]
    assert fields["pools"] == ()
    assert of_container(fields).model_dump(exclude_none=True) == {"name": "main", "extra": {}}


def test_without_online_cpus_there_is_no_sample() -> None:
    with pytest.raises(Unavailable, match="online"):
        summarise(LastPass(), {NODE: reading(0.0, {"load1": 1.0})}, OFFERED, [], 0.0)


def test_a_message_of_before_these_figures_is_still_read() -> None:
    old = """{"v":1,"node":"n","boot_id":"00000000","seq":1,"sent_at":"2026-01-01T00:00:00Z","trigger":"period",
        "node_reading":{"online_cpus":"0-3","extra":{}},"pools":[{"pool":"share","extra":{}}],
        "pods":[{"pod":{"uid":"aa","name":"web"},"containers":[{"name":"main","load1":1.5,"extra":{}}]}]}"""
    sample = NodeSample.decode(old.encode())
    assert (sample.pods[0].containers[0].memory_numa, sample.node_reading.cpus, sample.figure_ages_s) == (
        None,
        None,
        {},
    )


RAW = st.fixed_dictionaries(
    {},
    optional={
        name: st.one_of(st.integers(0, 2**64), st.integers(-5, 5), st.sampled_from([math.nan, math.inf, -math.inf]))
        for name in ("cpu_usage_ns", "nr_throttled", "nr_periods", "loaded_tasks", "novelty",
                     "runnable_tasks", "memory_usage_bytes")
    },
)  # fmt: skip
STEPS = st.lists(st.tuples(st.one_of(st.none(), RAW), st.integers(1, 3)), max_size=8)


@given(STEPS, st.floats(0, 100, allow_nan=False))
def test_no_figure_is_ever_negative_or_not_a_number(
    steps: list[tuple[dict[str, Any] | None, int]], every_s: float
) -> None:
    known = {"runnable_tasks", "memory_usage_bytes"}  # typed as whole numbers: the kernel prints no others
    clean = [raw and {k: v for k, v in raw.items() if k not in known or isinstance(v, int)} for raw, _ in steps]
    for fields in run(clean, identities=[i for _, i in steps], every_s=every_s):
        container = of_container(fields)
        numbers = [v for v in container.model_dump(exclude={"name", "extra"}).values() if v is not None]
        assert all(math.isfinite(n) and n >= 0 for n in [*numbers, *container.extra.values()])
        NodeSample(node="n", boot_id="0" * 8, seq=1, sent_at="2026-01-01T00:00:00Z", **fields)


@given(st.lists(st.integers(0, 10**10), min_size=2, max_size=10))
def test_usage_over_all_windows_adds_up_to_the_counter(growth: list[int]) -> None:
    counter, steps = 0, []
    for ns in growth:
        counter += ns
        steps.append({"cpu_usage_ns": counter})
    used = sum(present(of_container(f).cpu_usage_cores) * 2.0 for f in run(steps)[1:])
    assert used == pytest.approx(sum(growth[1:]) / 1e9, abs=1e-6)


@given(st.permutations(range(5)), st.permutations(range(5)))
def test_the_order_of_pods_and_readings_is_irrelevant(order: list[int], reading_order: list[int]) -> None:
    def sample(pods_in: Iterable[int], readings_in: Iterable[int]) -> Mapping[str, Any]:
        memory = LastPass()
        for now_s in (0.0, 2.0):
            readings = {NODE: reading(now_s, {"online_cpus": "0-3"})}
            for n in readings_in:
                readings[Target("container", f"{n}/main", f"g{n}")] = reading(
                    now_s, {"cpu_usage_ns": now_s * n * 1e9}, n
                )
            pods = [Pod(uid=str(n), name=f"p{9 - n}", containers=(Container(name="main"),)) for n in pods_in]
            fields, memory = summarise(memory, readings, OFFERED, pods, now_s)
        return fields

    assert sample(order, reading_order) == sample(range(5), range(5))


@given(st.lists(st.integers(0, 64), min_size=1, max_size=20))
def test_load_never_leaves_the_range_of_what_was_counted(counts: list[int]) -> None:
    for fields in run([{"loaded_tasks": count} for count in counts]):
        load = of_container(fields).load1
        assert load is None or 0 <= load <= max(counts)


def test_no_two_figures_of_the_real_sources_share_what_they_remember() -> None:
    for kind in ("node", "numa", "pool", "container"):
        figures = [f for s in known_sources().values() for f in s.figures.get(kind, ())]
        kept = [f.of for f in figures if isinstance(f, Rate)] + [f.name for f in figures if isinstance(f, Damped)]
        kept += [name for f in figures if isinstance(f, Ratio) for name in (f.of, f.over)]
        assert len(kept) == len(set(kept))


RAW_VALUES = (
    st.integers(-5, 200) | st.integers(2**64 - 2, 2**64 + 2) | st.floats(-5, 200) | st.booleans() | st.just("no number")
)


@given(st.none() | RAW_VALUES, st.none() | st.floats(0, 200) | st.integers(0, 200), st.sampled_from([-1.0, 0.0, 2.0]))
def test_a_usual_counter_is_judged_as_any_other(value: Any, before: float | None, span_s: float) -> None:
    rate, past = Rate("rate", of="counter", scale=1e-3), {} if before is None else {"counter": Point(before, 7.0)}
    raw = {} if value is None else {"counter": value}
    assert rate.compute(raw, 7.0 + span_s, past) == rate._judged(raw, 7.0 + span_s, past)


@given(RAW_VALUES)
def test_a_usual_gauge_is_judged_as_any_other(value: Any) -> None:
    class OtherGauge(Gauge):
        """Not the class that is known to hand on what was read."""

    (usual, other) = (
        figures(TargetReading(0.0, {"all": SourceReading(0.0, {"level": value})}), None, offers, 0.0)["all"]
        for offers in ({"all": OfferedFigures.of((kind("level"),))} for kind in (Gauge, OtherGauge))
    )
    assert (usual.values, usual.points, usual.rejected) == (other.values, other.points, other.rejected)
