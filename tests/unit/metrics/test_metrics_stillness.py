"""Which groups cannot have changed: those below one whose CPU time and memory are to the last digit as they were."""

import pytest

from services.metrics.core.figures.values import Raw
from services.metrics.core.reads.stillness import Stillness

HOME, POD, CONTAINER = "kubepods/besteffort", "kubepods/besteffort/pod1", "kubepods/besteffort/pod1/main"
RAW: Raw = {"cpu_usage_ns": 5, "memory_usage_bytes": 7}


@pytest.mark.parametrize(
    ("before", "now", "stands"),
    [
        pytest.param(RAW, RAW, True, id="as it was"),
        pytest.param(RAW, {**RAW, "cpu_usage_ns": 6}, False, id="something has run"),
        pytest.param(RAW, {**RAW, "memory_usage_bytes": 6}, False, id="something was reclaimed"),
        pytest.param({}, {}, False, id="nothing can be read"),
        pytest.param({"cpu_usage_ns": 5}, {"cpu_usage_ns": 5}, False, id="its memory is not known"),
        pytest.param({**RAW, "cpu_usage_ns": 0}, {**RAW, "cpu_usage_ns": 0}, False, id="it counts nobody"),
        pytest.param(None, RAW, False, id="it is new"),
    ],
)
def test_what_lies_below_a_home_stands_still_with_it(before: Raw | None, now: Raw, stands: bool) -> None:
    stillness = Stillness()
    stillness.begin({} if before is None else {HOME: before})
    assert not stillness.holds(POD)
    stillness.begin({HOME: now})
    assert stillness.holds(POD) is stands
    assert stillness.holds(CONTAINER) is stands
    assert not stillness.holds(f"{HOME}s/pod1")


def test_a_pod_that_was_read_as_it_was_holds_its_containers_for_this_pass() -> None:
    stillness = Stillness()
    stillness.begin({})
    stillness.add(POD, RAW)
    stillness.add(f"{HOME}/pod2", {**RAW, "cpu_usage_ns": 0})
    assert stillness.holds(CONTAINER)
    assert not stillness.holds(f"{HOME}/pod2/main")
    stillness.begin({})
    assert not stillness.holds(CONTAINER)
