"""The quick start's over-commit on 48 emulated CPUs: above five times the offer a pod goes, below ten none does."""

from collections.abc import Callable
from typing import Any

import pytest
from guest import listings as printed
from rig.play import Told

pytestmark = [pytest.mark.vm, pytest.mark.timeout(2400)]

LIMIT_S = 2000.0
LARGER = "reclaimed-large-pod-2"


@pytest.fixture(scope="module")
def overcommit(tell: Callable[[str, float], Told]) -> Told:
    return tell("overcommit", LIMIT_S)


def evicted(events: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Phase, pod and message of the events that the tutorial shows, in order."""
    told = ((event["phase"], event["pod"], event["message"]) for event in events)
    return [one for one in told if one[0] in {"created", "succeeded"}]


ONCE = [("created", LARGER, printed.CREATED), ("succeeded", LARGER, printed.SUCCEEDED)]


def test_above_five_times_the_offer_the_larger_reclaimed_pod_is_evicted(overcommit: Told) -> None:
    peak = overcommit.seen("full load")
    assert peak["millicpu"] == printed.OFFERED_AT_PEAK
    assert LARGER not in peak["pods"]
    assert overcommit.report["before"] == []
    assert evicted(overcommit.report["above five"]) == ONCE


def test_below_ten_times_the_offer_the_same_requests_stay(overcommit: Told) -> None:
    assert LARGER in overcommit.seen("below ten")["pods"]
    assert evicted(overcommit.report["below ten"]) == ONCE


def test_back_at_five_the_same_requests_are_evicted_again(overcommit: Told) -> None:
    assert LARGER not in overcommit.seen("evicted above five again")["pods"]
    assert evicted(overcommit.report["above five again"]) == ONCE * 2
    assert (overcommit.done.code, overcommit.report["left"]) == (0, [])
