"""Laws of pools that are the sums of their groups."""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.figures.target import NODE, Target
from services.metrics.core.reads.pooled import empty_pool, member_of, pool_of_members, pooled

SUMS = {"cpu": frozenset({"used_ns"}), "memory": frozenset({"held_bytes", "shared_bytes"})}
WHOLE, CONTAINER = Target("pool", "reclaim", "kubepods/besteffort"), Target("container", "aa/main", "g", "share")


@st.composite
def groups(draw: st.DrawFn) -> dict[Target, TargetReading]:
    """Parts of two pools; of some a source has failed, of some a value is not there."""
    found = {}
    for number in draw(st.lists(st.integers(0, 20), unique=True, max_size=8)):
        raws = {
            source: {name: draw(st.integers(0, 1 << 60)) for name in sorted(names) if draw(st.integers(0, 9))}
            for source, names in SUMS.items()
            if draw(st.integers(0, 9))
        }
        at_s = draw(st.floats(0, 100))
        parts = {source: SourceReading(at_s, raw | {"limit": 5}) for source, raw in raws.items()}
        pool = draw(st.sampled_from(["share", "reserve"]))
        found[member_of(pool, f"pod{number}")] = TargetReading(at_s, parts, draw(st.integers(0, 3)))
    return found


@given(groups())
def test_a_value_is_the_sum_over_all_groups_or_not_there(parts: dict[Target, TargetReading]) -> None:
    made = pooled(parts, SUMS)
    assert {target.name for target in made} == {target.pool for target in parts}
    for target, reading in made.items():
        own = [one for part, one in parts.items() if part.pool == target.name]
        for source, names in SUMS.items():
            for name in names:
                values: list[Any] = [
                    one.sources[source].raw.get(name) if source in one.sources else None for one in own
                ]
                assert reading.raw.get(name) == (None if None in values else sum(values))
        assert "limit" not in reading.raw


@given(groups(), st.randoms())
def test_the_order_in_which_groups_are_read_does_not_matter(parts: dict[Target, TargetReading], random: Random) -> None:
    mixed = list(parts.items())
    random.shuffle(mixed)
    assert pooled(dict(mixed), SUMS) == pooled(parts, SUMS)


@given(groups(), groups())
def test_a_pool_is_the_same_only_while_its_groups_are(
    before: dict[Target, TargetReading], now: dict[Target, TargetReading]
) -> None:
    def sets(parts: dict[Target, TargetReading], pool: str) -> set[tuple[str, int]]:
        return {(target.group, reading.identity) for target, reading in parts.items() if target.pool == pool}

    was, is_now = pooled(before, SUMS), pooled(now, SUMS)
    for pool in was.keys() & is_now.keys():
        same = sets(before, pool.name) == sets(now, pool.name)
        assert (was[pool].identity == is_now[pool].identity) == same


@given(groups(), st.sampled_from(["share", "reserve"]))
def test_nothing_adds_nothing(parts: dict[Target, TargetReading], pool: str) -> None:
    with_nothing = pooled({member_of(pool): empty_pool(SUMS, 50.0), **parts}, SUMS)[pool_of_members(pool)]
    without = pooled(parts, SUMS).get(pool_of_members(pool))
    zero = dict.fromkeys(["used_ns", "held_bytes", "shared_bytes"], 0)
    assert with_nothing.raw == (zero if without is None else without.raw)


@given(groups())
def test_whatever_is_no_part_of_a_pool_stays_as_it_is(parts: dict[Target, TargetReading]) -> None:
    others = {
        target: TargetReading(1.0, {"x": SourceReading(1.0, {"limit": 5})}, 7) for target in (NODE, WHOLE, CONTAINER)
    }
    made = pooled(parts | others, SUMS)
    assert {target: made[target] for target in others} == others
