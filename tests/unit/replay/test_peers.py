"""The peers' formulas against worked examples: those of their own tests and documents."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from shared.contracts.pod import QosClass
from shared.errors import BadConfig
from sublet.replay.peers import (
    PEERS,
    KatalystPool,
    KatalystRegulator,
    batch_allocatable_millis,
    katalyst_estimate_cores,
    peer_of,
    suppressed_cpus,
)
from sublet.replay.traces.frames import FrameLoad, Trace

MACHINE = Trace("node1", 48, True, lambda: iter(()))
BOUNDS = Bounds.of(48, smt=True)


def container(
    usage: float | None = None,
    load1: float | None = None,
    load5: float | None = None,
    request: float = 0.0,
    qos: QosClass = "shared_cores",
    pod: str = "default/web",
) -> ContainerView:
    return ContainerView(pod, "a0", "main", qos, request, 0, Figures(usage, load1, load5), Resident())


def view(*containers: ContainerView) -> View:
    return View(BOUNDS, containers)


@pytest.mark.parametrize(
    ("figures", "cores"),
    [
        ({"usage": 1.0}, 1.25),
        ({"usage": 2.0, "load1": 3.0, "load5": 1.0}, 3.0),
        ({"load5": 0.5, "request": 8.0}, 0.5),
        ({"usage": 0.0, "request": 2.0}, 2.0),
        ({}, 4.0),
    ],
)
def test_katalyst_estimate(figures: dict[str, Any], cores: float) -> None:
    assert katalyst_estimate_cores(container(**figures)) == cores


@pytest.mark.parametrize(("need", "share"), [(0.0, 4), (1.25, 6), (2.0, 6), (3.0, 8), (100.0, 44)])
def test_katalyst_sizes_of_the_quick_start(need: float, share: int) -> None:
    assert KatalystRegulator(48, True).round(KatalystPool(), need, 0.0).size == share


def test_katalyst_grows_by_ten_a_round_and_shrinks_by_two_in_thirty_seconds() -> None:
    pool, sizes = KatalystPool(), []
    for at_s, need in [(0, 1.0), (5, 40.0), (10, 40.0), (15, 40.0), (20, 40.0), (25, 1.0), (30, 1.0), (55, 1.0)]:
        pool = KatalystRegulator(48, True).round(pool, need, at_s)
        sizes.append(pool.size)
    assert sizes == [6, 16, 26, 36, 44, 42, 42, 40]


def test_katalyst_acts_every_five_seconds_and_makes_up_for_a_longer_frame() -> None:
    decider = PEERS["katalyst"].start(MACHINE)
    low, high = view(container(usage=1.0)), view(container(usage=32.0))
    sizes = [decider.decide(v, 0.0, at_s).tenants_cores for at_s, v in [(0.0, low), (2.0, high), (4.0, high)]]
    assert sizes == [6, 6, 6]
    assert decider.decide(high, 0.0, 5.0).tenants_cores == 16
    assert decider.decide(high, 0.0, 35.0).tenants_cores == 44


@pytest.mark.parametrize(
    ("cpus", "used", "system", "before", "ticks", "wanted"),
    [
        (20, 8.0, 2.0, None, 0, 3),  # 20 x 0.65 - 8 - 2
        (100, 0.0, 0.0, None, 0, 65),
        (48, 40.0, 0.0, 30, 1, 2),  # at once, down to the floor
        (48, 0.0, 0.0, 2, 1, 7),  # a tenth of 48, rounded up
        (48, 0.0, 0.0, 2, 4, 22),
        (1, 0.0, 0.0, None, 0, 1),
    ],
)
def test_koordinator_suppression(
    cpus: int, used: float, system: float, before: int | None, ticks: int, wanted: int
) -> None:
    assert suppressed_cpus(cpus, FrameLoad(used, system), before, ticks) == wanted


@pytest.mark.parametrize(
    ("cpus", "system", "used", "millis"), [(100, 7.0, 33.0, 20_000), (8, 0.2, 0.059, 4541), (48, 20.0, 20.0, 0)]
)
def test_koordinator_batch_cpu(cpus: int, system: float, used: float, millis: int) -> None:
    """The second is the example of its release notes: 4541."""
    assert batch_allocatable_millis(cpus, FrameLoad(used, system)) == millis


def test_koordinator_reports_the_mean_of_five_minutes_each_minute_and_only_what_differs() -> None:
    decider = PEERS["koordinator"].start(MACHINE)

    def offer(at_s: float, usage: float) -> float:
        return decider.decide(view(container(usage=usage)), 0.0, at_s).offered_cores

    assert offer(0.0, 8.0) == pytest.approx(20.8)
    assert offer(30.0, 20.0) == pytest.approx(20.8)  # no report is due
    assert offer(60.0, 20.0) == pytest.approx(28.8 - (8 + 20 + 20) / 3)
    assert offer(120.0, 13.0) == pytest.approx(12.8)  # within a tenth
    last = [offer(120.0 + 60 * n, 13.0) for n in range(1, 8)]
    assert last[-1] == pytest.approx(28.8 - 13.0)


def test_koordinator_counts_the_request_of_a_pod_without_a_figure() -> None:
    decider = PEERS["koordinator"].start(MACHINE)
    assert decider.decide(view(container(request=10.0)), 0.0, 0.0).offered_cores == pytest.approx(18.8)


def test_knobs_of_a_peer_are_its_thresholds() -> None:
    wide = peer_of("koordinator", "wide", {"suppress": 85, "reclaim": 90}).start(MACHINE)
    sizes = wide.decide(view(container(usage=10.0)), 0.0, 0.0)
    assert sizes.batch_cores == 31  # 48 x 0.85 - 10
    assert sizes.offered_cores == pytest.approx(33.2)  # 48 x 0.9 - 10
    slim = peer_of("katalyst", "slim", {"reserve": 0, "factor": 2}).start(MACHINE)
    assert slim.decide(view(container(usage=10.0)), 0.0, 0.0).tenants_cores == 20


@pytest.mark.parametrize(
    ("given_knobs", "word"),
    [({"supress": 85}, "supress"), ({"suppress": 101}, "at most 100"), ({"reclaim": "much"}, "whole number")],
)
def test_a_knob_that_is_none_is_refused_with_those_that_are(given_knobs: dict[str, Any], word: str) -> None:
    with pytest.raises(BadConfig, match=f"--peer k: .*{word}.*its knobs are suppress, reclaim"):
        peer_of("koordinator", "k", given_knobs)


@pytest.mark.parametrize("name", PEERS)
@given(
    steps=st.lists(st.tuples(st.floats(0.5, 400), st.none() | st.floats(0, 100)), min_size=1, max_size=20),
    cpus=st.integers(1, 128),
)
def test_a_peer_never_gives_away_more_than_there_is(
    name: str, steps: list[tuple[float, float | None]], cpus: int
) -> None:
    decider = PEERS[name].start(Trace("n", cpus, True, lambda: iter(())))
    at_s = 0.0
    for passed_s, usage in steps:
        at_s += passed_s
        sizes = decider.decide(View(Bounds.of(cpus, smt=True), (container(usage=usage),)), 0.0, at_s)
        assert 0 <= sizes.tenants_cores <= cpus
        assert 0 <= sizes.batch_cores <= cpus
        assert 0 <= sizes.offered_cores <= cpus
        assert sizes.tenants_cores + sizes.batch_cores - sizes.shared_cores <= cpus
        assert math.isfinite(sizes.room_cores(1e9))
