"""A cache of one target: what it holds is what would not be read, of one source and of all of them."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.reads.gates import Gate, LastRead, Moved, due
from services.metrics.core.reads.target_cache import TargetCache

GATE = Gate(10.0, (Moved("used", 5),))
PAUSED = Gate(30.0, (Moved("used", 5, jump=1000),), pause_s=8.0)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 5, 2000]), st.sampled_from([0.1, 2.0, 7.0, -3.0])), max_size=30),
    st.sampled_from([GATE, PAUSED, replace(PAUSED, moved=(Moved("used", 5),)), Gate(10.0), Gate(10.0, pause_s=8.0)]),
    st.floats(0.5, 1.0),
)
def test_a_cache_holds_what_is_not_due(steps: list[tuple[int, float]], gate: Gate, turn: float) -> None:
    cache, last, used, now_s = TargetCache(1, turn), None, 0, 100.0
    for growth, after_s in steps:
        used, now_s = used + growth, now_s + after_s
        watched = {"used": used}
        wanted, moving = (True, True) if last is None else due(gate, last, watched, now_s, turn)
        held, moved = cache.still_valid("dear", gate, watched, now_s)
        assert (held is None) == wanted
        if held is None:
            assert moved == moving
            last = LastRead(now_s, watched, moving, first=last is None)
            cache.store("dear", gate, SourceReading(now_s, {}), (watched, moving))


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 5]), st.sampled_from([0.1, 2.0, 7.0]), st.booleans()), max_size=30),
    st.lists(
        st.sampled_from([GATE, PAUSED, Gate(30.0), Gate(4.0, (Moved("used", 1),), pause_s=8.0)]), min_size=1, max_size=3
    ),
    st.floats(0.5, 1.0),
)
def test_a_whole_reading_holds_while_nothing_has_changed_and_no_source_is_due(
    steps: list[tuple[int, float, bool]], gates: list[Gate], turn: float
) -> None:
    """In a whole pass, which the last of a step's three says, the sources know no pause."""
    cache, used, now_s = TargetCache(1, turn), 0, 100.0
    paused = [(str(number), None, gate) for number, gate in enumerate(gates)]
    without = [(name, None, replace(gate, pause_s=0.0)) for name, _, gate in paused]
    before, last = None, dict[str, LastRead]()
    for growth, after_s, whole in steps:
        used, now_s = used + growth, now_s + after_s
        watched, gated = {"used": used}, without if whole else paused
        always = {"cheap": SourceReading(now_s, watched)}
        wanted = {name: name not in last or due(gate, last[name], watched, now_s, turn)[0] for name, _, gate in gated}
        held = cache.unchanged(always, gated, now_s)
        assert held is None or (watched == before and not any(wanted.values()))
        if held is None:
            before = watched
            for name, _, gate in gated:
                found, moving = cache.still_valid(name, gate, watched, now_s)
                if found is None:
                    last[name] = LastRead(now_s, watched, moving, first=name not in last)
                    cache.store(name, gate, SourceReading(now_s, {}), (watched, moving))
            cache.store_whole(TargetReading(now_s, always, 1))
        there = cache.held([("cheap", None)], gated, now_s)
        assert there is None or there == cache.unchanged(always, gated, now_s)
        assert cache.held([("cheap", None), ("another", None)], gated, now_s) is None


def test_a_whole_reading_at_rest_is_the_very_same_until_the_first_of_its_sources_is_due() -> None:
    cache = TargetCache(1, 1.0)
    gated = [("soon", None, Gate(10.0, (Moved("used", 5),))), ("late", None, Gate(30.0))]
    always, whole = (
        {"cheap": SourceReading(0.0, {"used": 0})},
        TargetReading(0.0, {"cheap": SourceReading(0.0, {"used": 0})}, 1),
    )
    for moving in (True, False):
        for name, _, gate in gated:
            cache.store(name, gate, SourceReading(0.0, {}), ({"used": 0}, moving))
    cache.store_whole(whole)
    held = [cache.unchanged(always, gated, now_s) for now_s in (0.0, 9.9, 19.9, 20.0)]
    assert [one is held[0] for one in held] == [True, True, True, False]
    assert (held[0], held[3]) == (whole, None)
    assert cache.held([("cheap", None)], gated, 19.9) is held[0]
