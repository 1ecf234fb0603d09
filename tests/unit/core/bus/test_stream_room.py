"""Who gives way in a stream that is nearly full."""

from hypothesis import given
from hypothesis import strategies as st

from shared.core.bus.stream_room import FULL, ROOM, SHARE, Cut, Held, Weighed, cuts

MIB = 1 << 20


def sample(**messages: tuple[int, int]) -> list[Weighed]:
    """By node, how many messages of how many bytes."""
    return [Weighed(node, size) for node, (count, size) in messages.items() for _ in range(count)]


def test_with_room_nobody_gives_way() -> None:
    assert cuts(Held(1000, 60 * MIB, 0, 100 * MIB), sample(a=(100, 1000))) == ()
    assert cuts(Held(1000, 99 * MIB, 0, 0), sample(a=(100, 1000))) == ()
    assert cuts(Held(0, 0, 10, 100), []) == ()


def test_one_node_alone_loses_its_own_oldest_for_others_may_be_too_few_to_be_in_a_sample() -> None:
    assert cuts(Held(1000, 80 * MIB, 0, 100 * MIB), sample(a=(200, 1000))) == (Cut("a", 750),)


def test_who_holds_most_bytes_gives_way_though_others_have_more_messages() -> None:
    found = cuts(
        Held(20_000, 90 * MIB, 0, 100 * MIB), sample(hostile=(20, 32_000), **{f"n{n}": (9, 1000) for n in range(20)})
    )
    assert [cut.node for cut in found] == ["hostile"]
    assert 0 < found[0].keep < 2_000 * SHARE / 0.5


def test_a_flood_of_small_messages_counts_by_messages() -> None:
    held = Held(90_000, 10 * MIB, 100_000, 100 * MIB)
    found = cuts(held, sample(hostile=(150, 60), **{f"n{n}": (2, 20_000) for n in range(25)}))
    assert [cut.node for cut in found] == ["hostile"]


def test_an_even_load_loses_its_oldest() -> None:
    assert cuts(Held(10_000, 80 * MIB, 0, 100 * MIB), sample(**{f"n{n}": (10, 1000) for n in range(20)})) == (
        Cut("", 7_500),
    )


@given(
    st.floats(0.01, 1.0),
    st.dictionaries(
        st.sampled_from("abcdefghijklmnop"), st.tuples(st.integers(1, 50), st.integers(1, 32_768)), min_size=1
    ),
)
def test_whoever_is_cut_held_more_than_his_share_and_room_is_made(
    level: float, messages: dict[str, tuple[int, int]]
) -> None:
    held = Held(100_000, int(level * 100 * MIB), 0, 100 * MIB)
    found = cuts(held, sample(**messages))
    assert bool(found) == (held.level > FULL)
    total = sum(count * size for count, size in messages.values())
    for cut in found:
        assert 0 <= cut.keep < held.messages
        if cut.node:
            count, size = messages[cut.node]
            assert held.level * count * size / total > SHARE * ROOM
