"""What counts as the same picture, and when a node rests."""

from dataclasses import replace

import pytest

from services.metrics.core.rest import STILL_PASSES, Rest, same_cores, same_picture
from services.metrics.core.wakeup import Observation

GB = 10**9
SEEN = Observation(1.0, 32 * GB, 7)


@pytest.mark.parametrize(
    ("now", "same"),
    [
        pytest.param(SEEN, True, id="equal"),
        pytest.param(replace(SEEN, tenant_cores=1.25), True, id="hardly more"),
        pytest.param(replace(SEEN, tenant_cores=1.3), False, id="more"),
        pytest.param(replace(SEEN, tenant_cores=0.7), False, id="less: room to give"),
        pytest.param(replace(SEEN, memory_free_bytes=31 * GB), False, id="less memory"),
        pytest.param(replace(SEEN, memory_free_bytes=33 * GB), False, id="more memory"),
        pytest.param(replace(SEEN, pods_generation=8), False, id="another pod"),
        pytest.param(replace(SEEN, tenant_cores=None), False, id="unknown use is not the same use"),
        pytest.param(replace(SEEN, memory_free_bytes=None), False, id="unknown memory"),
        pytest.param(replace(SEEN, pods_generation=None), False, id="unknown pods"),
    ],
)
def test_the_same_picture(now: Observation, same: bool) -> None:
    assert same_picture(SEEN, now, 64 * GB) is same
    assert not same_picture(SEEN, now, None)


def test_on_a_large_machine_a_tenth_is_the_same_use() -> None:
    assert same_cores(100.0, 109.0)
    assert not same_cores(100.0, 111.0)
    assert not same_cores(None, None)


def rested(passes: int = STILL_PASSES + 1, step_cores: float = 0.0, node_cores: float | None = 2.0) -> Rest:
    rest = Rest()
    for number in range(passes):
        seen = replace(SEEN, tenant_cores=1.0 + number * step_cores)
        rest = rest.after(seen, node_cores, 64 * GB, float(number))
    return rest


def test_a_node_rests_once_five_passes_have_shown_what_the_one_before_them_did() -> None:
    assert rested().lasts(5.0)
    assert not rested(STILL_PASSES).lasts(4.0)
    assert not rested().lasts(7.0), "a pass at 7 s has failed"


def test_a_slow_drift_is_no_rest() -> None:
    assert not rested(step_cores=0.06).lasts(5.0)


def test_batch_work_that_moves_is_no_rest() -> None:
    assert not rested().after(SEEN, 2.5, 64 * GB, 6.0).lasts(6.0)
    assert not rested(node_cores=None).lasts(5.0)
