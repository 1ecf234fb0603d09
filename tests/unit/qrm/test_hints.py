"""NUMA hints: offered per resource, merged into one choice."""

from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.placement.hints import Hint, hints, merge


def test_the_fewest_nodes_that_hold_the_need_are_preferred() -> None:
    assert hints({0: 4, 1: 8}, 6) == (Hint((1,), True), Hint((0, 1), False))
    assert hints({0: 4, 1: 4}, 6) == (Hint((0, 1), True),)
    assert hints({0: 4, 1: 4}, 9) == ()


def test_a_number_of_nodes_is_kept_to() -> None:
    assert hints({0: 8, 1: 8, 2: 8}, 2, exactly=2) == (
        Hint((0, 1), True), Hint((0, 2), True), Hint((1, 2), True),
    )  # fmt: skip


def test_memory_decides_where_cpus_do_not() -> None:
    cpu, memory = hints({0: 8, 1: 8}, 4), hints({0: 10, 1: 100}, 50)
    assert merge({"cpu": cpu, "memory": memory}) == Hint((1,), True)


def test_resources_that_cannot_agree_on_one_node_agree_on_two() -> None:
    cpu, memory = hints({0: 8, 1: 1}, 4), hints({0: 10, 1: 100}, 50)
    assert merge({"cpu": cpu, "memory": memory}) == Hint((0, 1), False)


def test_what_one_resource_alone_prefers_is_not_preferred() -> None:
    cpu, memory = hints({0: 8, 1: 1}, 4), hints({0: 30, 1: 30}, 50)
    assert memory == (Hint((0, 1), True),)
    assert merge({"cpu": cpu, "memory": memory}) == Hint((0, 1), False)


def test_nothing_fits_where_one_resource_has_no_hint() -> None:
    assert merge({"cpu": hints({0: 8}, 4), "memory": hints({0: 1}, 50)}) is None
    assert merge({}) is None


def test_a_wished_order_breaks_ties() -> None:
    cpu = hints({0: 8, 1: 8}, 4)
    assert merge({"cpu": cpu}) == Hint((0,), True)
    assert merge({"cpu": cpu}, order={1: -1}) == Hint((1,), True)


AMOUNTS = st.dictionaries(st.integers(0, 5), st.integers(0, 50), min_size=1, max_size=5)


@given(AMOUNTS, AMOUNTS, st.integers(1, 80), st.integers(1, 80))
def test_the_choice_holds_every_request_and_no_smaller_choice_does(
    cpus: dict[int, int], memory: dict[int, int], need_cpus: int, need_memory: int
) -> None:
    best = merge({"cpu": hints(cpus, need_cpus), "memory": hints(memory, need_memory)})
    both = sorted(cpus.keys() & memory.keys())
    if best is None:
        assert sum(cpus[n] for n in both) < need_cpus or sum(memory[n] for n in both) < need_memory
        return
    assert sum(cpus[n] for n in best.numas) >= need_cpus
    assert sum(memory[n] for n in best.numas) >= need_memory
    for dropped in best.numas:
        rest = [n for n in best.numas if n != dropped]
        assert sum(cpus[n] for n in rest) < need_cpus or sum(memory[n] for n in rest) < need_memory
