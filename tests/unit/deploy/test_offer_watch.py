"""The checker of the stories with several nodes finds an offer that is above what is applied."""

import pytest
from offer_watch import OfferWatch

Looks = list[tuple[int, tuple[int, ...]]]
"""Offered milli-cores, and what was granted since the look before, look by look; a look takes no time."""


class World:
    """One node, and a clock that stands still within a look."""

    def __init__(self, look_takes_s: float = 0.0) -> None:
        self.now_s, self.offer, self.granted, self.look_takes_s = 0.0, 0, 0, look_takes_s
        self.watch = OfferWatch(self.read_offers, lambda: {"n": self.granted}, lambda: self.now_s)

    def read_offers(self) -> dict[str, int]:
        self.now_s += self.look_takes_s
        return {"n": self.offer}

    def play(self, looks: Looks) -> OfferWatch:
        """Each look a second after the one before, and what was granted spread over the second."""
        for offer, granted in looks:
            for self.granted in granted:
                self.now_s += 1.0 / len(granted)
                self.watch.note_granted()
            self.offer = offer
            self.watch.look()
        return self.watch


@pytest.mark.parametrize(
    ("looks", "late_s"),
    [
        pytest.param([(1700, (2000,)), (1700, (2000,))], 0.0, id="nothing happens"),
        pytest.param([(1700, (2000,)), (1700, (1000,)), (1000, (1000,))], 1.0, id="an offer follows what was narrowed"),
        pytest.param([(1000, (1000,)), (1000, (2000,)), (1700, (2000,))], 0.0, id="an offer follows what was widened"),
        pytest.param(
            [(1000, (1000,)), (1149, (1000, 2000, 2000, 1000)), (1000, (1000,))], 1.0, id="wide for less than a look"
        ),
    ],
)
def test_an_offer_that_follows_what_is_applied_is_no_fault(looks: Looks, late_s: float) -> None:
    watch = World().play(looks)
    assert (watch.faults, watch.late_s.get("n", 0.0), watch.looks["n"]) == ([], late_s, len(looks))


@pytest.mark.parametrize(
    "looks",
    [
        [(1000, (1000,)), (1700, (1000,))],
        [(2000, (2000,)), (2000, (1000,)), (1700, (1000,))],
        [(1000, (2000,)), (1000, (1000,)), (1000, (1000,)), (1149, (1000,))],
    ],
)
def test_an_offer_that_is_written_above_what_is_applied_is_a_fault(looks: Looks) -> None:
    watch = World().play(looks)
    assert len(watch.faults) == 1
    assert watch.faults[0] in watch.said()


@pytest.mark.parametrize(("look_takes_s", "faults"), [(0.5, 0), (0.0, 1)])
def test_a_request_may_have_been_on_its_way_for_as_long_as_a_look_takes(look_takes_s: float, faults: int) -> None:
    """Narrowed a moment before the look, at which an offer of before was not yet to be seen."""
    looks: Looks = [(1000, (2000,)), (1000, (2000, 2000, 2000, 1000)), (1149, (1000,))]
    assert len(World(look_takes_s).play(looks).faults) == faults
