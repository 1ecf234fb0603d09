"""The plugins that follow Koordinator's triggers: memory in use, CPU by satisfaction, requests by what is offered."""

from dataclasses import replace
from typing import Any

import pytest
from evictor_world import GIB, TOTAL_BYTES, pod
from hypothesis import given
from hypothesis import strategies as st
from plugin_world import PLUGINS, calm, goes, reading, says, view, words
from pydantic import ValidationError

from services.evictor.core.plugin import Pressure, View
from services.evictor.settings import read
from shared.contracts.allocation import PoolAllocation
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.contracts.sample import PoolReading
from shared.errors import BadConfig

PERCENT = TOTAL_BYTES // 100


def using(percent: float | None, readings: Any = (), **node: Any) -> View:
    """A view with so much of the memory in use."""
    available = None if percent is None else TOTAL_BYTES - round(percent * TOTAL_BYTES / 100)
    return calm(list(readings), node={"memory_available_bytes": available, **node})


@pytest.mark.parametrize(
    ("settings", "used", "seen"),
    [
        pytest.param({}, [69.9, 70], "calm hard", id="70 by default"),
        pytest.param(
            {}, [70, 69, 68.1, 68, 69.9], "hard hard hard calm calm", id="down to 2 less, and no sooner again"
        ),
        pytest.param({"lower_percent": 60}, [70, 60.1, 60], "hard hard calm", id="down to the lower mark"),
        pytest.param({}, [75, None, 69], "hard unknown calm", id="what nobody saw is no relieving"),
        pytest.param({"threshold_percent": 90}, [89.9, 90], "calm hard", id="its own threshold"),
        pytest.param({"threshold_percent": 1}, [0.5, 1, 0], "calm hard calm", id="a lower mark below zero is zero"),
    ],
)
def test_marks_start_and_end_the_eviction(settings: Any, used: list[float | None], seen: str) -> None:
    assert words(says("memory_usage", [using(percent) for percent in used], **settings)) == seen.split()


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({"memory_total_bytes": None}, id="no total"),
        pytest.param({"memory_total_bytes": 0}, id="a total of zero"),
        pytest.param({"memory_available_bytes": TOTAL_BYTES + 1}, id="more available than there is"),
    ],
)
def test_memory_that_cannot_be_is_not_known(node: dict[str, Any]) -> None:
    plugin = PLUGINS["memory_usage"]
    assert says("memory_usage", [using(90, **node)]) == ["unknown"]
    assert plugin.near(using(90, **node), plugin.settings()) is None


def test_the_finding_says_what_it_rests_on_and_how_much_is_too_much() -> None:
    (found,) = says("memory_usage", [using(95)], threshold_percent=80)
    assert (found.scope, found.condition) == ("memory.usage", None)
    assert found.observed - found.threshold == pytest.approx(17 * PERCENT, abs=200)
    numbers = {name: found.why.numbers[name] for name in ("used_percent", "threshold_percent", "lower_percent")}
    assert numbers == {"used_percent": 95.0, "threshold_percent": 80, "lower_percent": 78}
    plugin = PLUGINS["memory_usage"]
    near = plugin.near(using(50), plugin.settings())
    assert near is not None
    assert (near.observed, near.threshold) == (TOTAL_BYTES // 2, 70 * TOTAL_BYTES // 100)


def test_reclaimed_pods_alone_go_low_priority_first_then_large_then_without_a_figure() -> None:
    crowd = [
        reading(pod("low", priority=10), memory_usage_bytes=GIB),
        reading(pod("big", priority=20), memory_usage_bytes=5 * GIB),
        reading(pod("same", priority=20), memory_usage_bytes=5 * GIB),
        reading(pod("none", priority=20)),
        reading(pod("high", priority=30), memory_usage_bytes=9 * GIB),
    ]
    web = reading(pod("web", "shared_cores", priority=-1), memory_usage_bytes=9 * GIB)
    one = using(90, [web, *crowd[::-1]])
    (found,) = says("memory_usage", [one])
    assert goes("memory_usage", one, found) == ["low", "big", "same", "none", "high"]
    ranking = PLUGINS["memory_usage"].rank(one, found, PLUGINS["memory_usage"].settings())
    assert [c.relief for c in ranking] == [GIB, 5 * GIB, 5 * GIB, None, 9 * GIB]


@given(st.lists(st.one_of(st.none(), st.integers(0, 1000)), max_size=12), st.integers(2, 100), st.integers(0, 99))
def test_pressure_never_begins_below_the_threshold_nor_lasts_below_the_lower_mark(
    used: list[int | None], threshold: int, lower: int
) -> None:
    lower = min(lower, threshold - 1)
    views = [using(tenths if tenths is None else tenths / 10) for tenths in used]
    found = says("memory_usage", views, threshold_percent=threshold, lower_percent=lower)
    before: Any = "calm"
    for one, finding in zip(views, found, strict=True):
        if isinstance(finding, Pressure):
            assert finding.observed > finding.threshold
            if not isinstance(before, Pressure):
                assert finding.observed * 100 >= threshold * TOTAL_BYTES
        elif one.sample.node_reading.memory_available_bytes is None:
            assert finding == "unknown"
        before = finding


@pytest.mark.parametrize(
    ("section", "settings", "says_so"),
    [
        ("memory_usage", {"lower_percent": 70}, "lower_percent 70: want less than threshold_percent, which is 70"),
        ("memory_usage", {"threshold_percent": 101}, "threshold_percent"),
        ("memory_usage", {"lower_percent": -1}, "lower_percent"),
        ("cpu_satisfaction", {"lower_percent": 0}, "lower_percent"),
        ("cpu_satisfaction", {"lower_percent": 61, "upper_percent": 70}, "lower_percent"),
        ("cpu_satisfaction", {"upper_percent": 100}, "upper_percent"),
        ("cpu_satisfaction", {"lower_percent": 50}, "upper_percent 40: want at least lower_percent, which is 50"),
        ("cpu_satisfaction", {"limit": "none"}, "limit"),
        ("reclaimed_allocatable", {"lower_percent": 110}, "lower_percent 110: want less than threshold_percent"),
        ("reclaimed_allocatable", {"highest_priority": 8000}, "highest_priority"),
        ("reclaimed_allocatable", {"resources": []}, "resources"),
    ],
)
def test_marks_that_cannot_be_followed_are_refused(section: str, settings: Any, says_so: str) -> None:
    with pytest.raises(ValidationError, match=says_so):
        PLUGINS[section].settings(**settings)
    with pytest.raises(BadConfig, match=says_so.partition(":")[0]):
        read({"plugins": {section: settings}})


def starving(t_s: float, usage_cores: float | None = 2.0, *, offer: int | None = 9000, **pool: Any) -> View:
    """12 cores asked for, on a pool of 4 CPUs of which 2 may be used."""
    pods = [reading(pod("a", cpu=8000, priority=5), cpu_usage_cores=1.9), reading(pod("b", cpu=4000, priority=5))]
    pods += [reading(pod("c", cpu=0, priority=1)), reading(pod("gone", cpu=90_000, priority=1, terminating=True))]
    one = view([*pods, reading(pod("web", "shared_cores", cpu=90_000))], low=False, t_s=t_s)
    figures = {"cpu_limit_cores": 2.0, **pool}
    pools = (PoolReading(pool="reclaim", cpu_usage_cores=usage_cores, **figures),)
    offered = None if offer is None else {RECLAIMED_CPU: offer}
    return replace(one, sample=one.sample.model_copy(update={"pools": pools}), reclaimed=offered)


def at_steps(count: int, **fields: Any) -> list[View]:
    return [starving(5.0 * step, **fields) for step in range(count)]


def test_who_starves_over_the_window_and_now_is_asked_to_go() -> None:
    views = at_steps(5)
    found = says("cpu_satisfaction", views)
    assert words(found) == ["calm"] * 3 + ["soft"] * 2, "a third of the window is needed"
    # 12000 asked for, 2000 to be had: 40 % of 12000 are 4800, so that 2800 should go.
    assert (found[-1].observed, found[-1].threshold) == (12_000, 9200)
    assert found[-1].why.numbers["limit_millis"] == 2000
    assert found[-1].why.numbers["window_used_millis"] == 2000
    assert goes("cpu_satisfaction", views[-1], found[-1]) == ["a", "b"]


@pytest.mark.parametrize(
    ("last", "settings"),
    [
        pytest.param({"usage_cores": 1.7}, {}, id="they do not use what they can have"),
        pytest.param({"usage_cores": 4.0, "cpu_limit_cores": 4.0}, {}, id="they have enough now"),
        pytest.param({"usage_cores": 4.0, "cpu_limit_cores": None}, {}, id="without a limit the pool's CPUs"),
        pytest.param({"offer": 9000}, {"limit": "offer"}, id="the offer is enough"),
    ],
)
def test_both_the_window_and_the_moment_must_say_so(last: dict[str, Any], settings: Any) -> None:
    views = [*at_steps(6), starving(30.0, **last)]
    assert words(says("cpu_satisfaction", views, **settings))[-1] == "calm"
    # The same all the time, and starving at the last moment alone.
    views = [*at_steps(6, **last), starving(30.0)]
    assert words(says("cpu_satisfaction", views, **settings))[-1] == "calm"


@pytest.mark.parametrize(
    ("last", "settings"),
    [
        pytest.param({"usage_cores": None}, {}, id="no usage"),
        pytest.param({"offer": None}, {"limit": "offer"}, id="an offer that is absent is not zero"),
    ],
)
def test_what_is_not_known_is_no_starving_and_starts_the_window_anew(last: dict[str, Any], settings: Any) -> None:
    before = {"offer": 0} if settings else {}
    views = [*at_steps(6, **before), starving(30.0, **last), starving(35.0, **before)]
    assert words(says("cpu_satisfaction", views, **settings))[-3:] == ["soft", "unknown", "calm"]


def test_without_an_allocation_or_the_reclaimed_pool_in_it_nothing_is_known() -> None:
    (one,) = at_steps(1)
    assert one.allocation is not None
    others = one.allocation.model_copy(update={"pools": (PoolAllocation(pool="share", cpus="0-3"),)})
    assert says("cpu_satisfaction", [replace(one, allocation=None), replace(one, allocation=others)]) == ["unknown"] * 2


def asking(offer: Any, *requests: tuple[str, int, int]) -> View:
    """Reclaimed pods of a name, a priority and GiB asked for, with bytes on offer; and some that do not count."""
    pods = [reading(pod(name, priority=priority, memory=size * GIB)) for name, priority, size in requests]
    pods += [
        reading(pod("high", priority=6000, memory=90 * GIB)),
        reading(pod("gone", memory=90 * GIB, terminating=True)),
    ]
    one = view([*pods, reading(pod("web", "shared_cores", memory=90 * GIB))], low=False)
    return replace(one, reclaimed=offer)


def gib(amount: float) -> dict[str, int]:
    return {RECLAIMED_MEMORY: int(amount * GIB)}


@pytest.mark.parametrize(
    ("offers", "seen"),
    [
        pytest.param([gib(20)], "calm", id="what is offered"),
        pytest.param([gib(20 / 1.1)], "soft", id="more than 110 %"),
        pytest.param([gib(19)], "calm", id="a little more"),
        pytest.param([gib(18), gib(19), gib(20), gib(19)], "soft soft calm calm", id="down to what is offered"),
        pytest.param([gib(0)], "soft", id="nothing is offered"),
        pytest.param([{}], "calm", id="absent is not zero"),
        pytest.param([{RECLAIMED_CPU: 10**9}], "calm", id="of memory nothing is said"),
        pytest.param([gib(18), None, gib(19)], "soft unknown calm", id="not known"),
    ],
)
def test_requests_are_held_against_what_is_offered(offers: list[Any], seen: str) -> None:
    views = [asking(offer, ("a", 10, 12), ("b", 5, 8)) for offer in offers]
    assert words(says("reclaimed_allocatable", views)) == seen.split()


def test_who_asks_goes_by_priority_then_request_and_each_brings_its_request() -> None:
    one = asking(gib(10), ("a", 10, 12), ("b", 5, 8), ("c", 10, 13), ("none", 1, 0))
    (found,) = says("reclaimed_allocatable", [one])
    assert (found.observed, found.threshold) == (33 * GIB, 10 * GIB)
    ranking = PLUGINS["reclaimed_allocatable"].rank(one, found, PLUGINS["reclaimed_allocatable"].settings())
    assert [(c.pod.name, c.relief) for c in ranking] == [("b", 8 * GIB), ("c", 13 * GIB), ("a", 12 * GIB)]


def test_resources_are_looked_at_each_by_itself_in_the_order_given() -> None:
    one = replace(view([reading(pod("a", cpu=2000, memory=2 * GIB))], low=False), reclaimed={RECLAIMED_CPU: 1} | gib(1))
    assert [f.scope for f in says("reclaimed_allocatable", [one])] == ["memory.requests.reclaimed"]
    assert [f.scope for f in says("reclaimed_allocatable", [one], resources=("cpu",))] == ["cpu.requests.reclaimed"]


FILES = ("cpu_satisfaction", "memory_usage", "reclaimed_allocatable")


def test_all_are_off_until_each_is_switched_on_by_one_key() -> None:
    names = {PLUGINS[section].name for section in FILES}
    assert not names & read({})[1].keys()
    assert names <= read({"plugins": {section: {"enabled": True} for section in FILES}})[1].keys()
