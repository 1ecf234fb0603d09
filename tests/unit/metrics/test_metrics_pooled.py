"""Laws of pools that are the sums of their groups."""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.figures.target import NODE, Target
from services.metrics.core.reads.pooled import Pools, empty_pool, member_of, pool_of_members, pooled

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


@given(groups(), st.lists(groups(), min_size=1, max_size=3), st.data())
def test_what_is_carried_from_pass_to_pass_adds_up_to_what_one_look_at_all_of_it_would(
    parts: dict[Target, TargetReading], others: list[dict[Target, TargetReading]], data: st.DataObject
) -> None:
    """From each pass to the next some groups stay as they were, some go, and some are new or were read again."""
    pools, seen = Pools(SUMS, gated={"memory"}), parts
    for other in [{}, *others]:
        staying = {one: reading for one, reading in seen.items() if data.draw(st.booleans())}
        seen = data.draw(st.sampled_from([seen, staying, other | staying, staying | other]))
        made, fresh = pools.pooled(seen), pooled(seen, SUMS)
        assert {one: (reading.raw, reading.identity) for one, reading in made.items()} == {
            one: (reading.raw, reading.identity) for one, reading in fresh.items()
        }


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


def test_a_part_that_stands_still_makes_a_sum_no_older_but_what_takes_turns_is_as_old_as_its_oldest_part() -> None:
    pools, names = Pools(SUMS, gated={"memory"}), ("pod1", "pod2")

    def part(at_s: float) -> TargetReading:
        used, held = SourceReading(at_s, {"used_ns": 1}), SourceReading(at_s, {"held_bytes": 2, "shared_bytes": 3})
        return TargetReading(at_s, {"cpu": used, "memory": held}, 7)

    first, second = (member_of("share", name) for name in names)
    still = part(1.0)
    pools.pooled({first: still, second: part(1.0)})
    pool = pools.pooled({first: still, second: part(5.0)})[pool_of_members("share")]
    assert (pool.at_s, pool.sources["cpu"].at_s, pool.sources["memory"].at_s) == (5.0, 5.0, 1.0)
    assert pool.raw == {"used_ns": 2, "held_bytes": 4, "shared_bytes": 6}
    pool = pools.pooled({first: part(8.0), second: part(6.0)})[pool_of_members("share")]
    assert (pool.at_s, pool.sources["cpu"].at_s, pool.sources["memory"].at_s) == (6.0, 6.0, 6.0)


def test_a_pool_whose_groups_were_not_read_again_is_the_same_reading_and_one_that_lost_a_group_is_not() -> None:
    pools = Pools(SUMS)
    one, two = member_of("share", "pod1"), member_of("share", "pod2")
    parts = {at: TargetReading(1.0, {"cpu": SourceReading(1.0, {"used_ns": 1})}, 7) for at in (one, two)}
    name = pool_of_members("share")
    first = pools.pooled(parts)[name]
    assert pools.pooled(parts)[name] is first
    alone = pools.pooled({two: parts[two]})[name]
    assert (alone.raw["used_ns"], alone.at_s) == (1, 1.0)
