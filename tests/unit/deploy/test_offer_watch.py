"""The checker of the stories with several nodes finds an offer that is above what is applied."""

import pytest
from offer_watch import OfferWatch

Looks = list[tuple[int, int]]
"""Offered and granted milli-cores, look by look."""


def watched(looks: Looks) -> OfferWatch:
    rest = iter(looks)
    watch = OfferWatch(lambda: {"n": next(rest)})
    for _ in looks:
        watch.look(1.0)
    return watch


@pytest.mark.parametrize(
    ("looks", "late_s"),
    [
        pytest.param([(1700, 2000), (1700, 2000)], 0.0, id="nothing happens"),
        pytest.param([(1700, 2000), (1700, 1000), (1000, 1000)], 1.0, id="an offer follows what was narrowed"),
        pytest.param([(1000, 1000), (1000, 2000), (1700, 2000)], 0.0, id="an offer follows what was widened"),
    ],
)
def test_an_offer_that_follows_what_is_applied_is_no_fault(looks: Looks, late_s: float) -> None:
    watch = watched(looks)
    assert (watch.faults, watch.late_s.get("n", 0.0), watch.looks["n"]) == ([], late_s, len(looks))


@pytest.mark.parametrize("looks", [[(1000, 1000), (1700, 1000)], [(2000, 2000), (1700, 1000), (1500, 1000)]])
def test_an_offer_that_is_written_above_what_is_applied_is_a_fault(looks: Looks) -> None:
    watch = watched(looks)
    assert len(watch.faults) == 1
    assert watch.faults[0] in watch.said()
