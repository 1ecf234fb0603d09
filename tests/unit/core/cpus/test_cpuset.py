"""Sets of CPUs and their text form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.cpus.cpuset import MAX_CPUS, CpuSet, canonical_cpu_list

cpus = st.frozensets(st.integers(0, 200), max_size=40)


@given(cpus)
def test_a_set_survives_its_text_and_its_iteration(ids: frozenset[int]) -> None:
    made = CpuSet.of(ids)
    assert CpuSet.parse(str(made)) == made
    assert list(made) == sorted(ids)
    assert (len(made), bool(made)) == (len(ids), bool(ids))


@given(cpus, cpus)
def test_the_operators_are_those_of_sets(one: frozenset[int], other: frozenset[int]) -> None:
    a, b = CpuSet.of(one), CpuSet.of(other)
    assert set(a | b) == one | other
    assert set(a & b) == one & other
    assert set(a - b) == one - other
    assert (a <= b) == (one <= other)
    assert (a == b) == (one == other)
    assert all((cpu in a) == (cpu in one) for cpu in range(201))


@given(cpus, st.integers(0, 50))
def test_first_takes_the_lowest(ids: frozenset[int], count: int) -> None:
    assert list(CpuSet.of(ids).first(count)) == sorted(ids)[:count]


@given(cpus)
def test_there_is_one_spelling(ids: frozenset[int]) -> None:
    text = str(CpuSet.of(ids))
    shuffled = ",".join(str(cpu) for cpu in sorted(ids, reverse=True))
    assert canonical_cpu_list(shuffled) == canonical_cpu_list(text) == text


@pytest.mark.parametrize(
    ("text", "spelled"),
    [("", ""), ("0", "0"), ("0-3,8", "0-3,8"), ("3,2,1,0", "0-3"), ("0-1,2-3", "0-3"), (" 1 , 2\n", "1-2"),
     ("5-5", "5"), ("0,2,4", "0,2,4"), (f"{MAX_CPUS - 1}", f"{MAX_CPUS - 1}"), (",1,,2,", "1-2")],
)  # fmt: skip
def test_a_list_is_spelled_ascending_with_ranges(text: str, spelled: str) -> None:
    assert canonical_cpu_list(text) == spelled


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "1-",
        "-1",
        "3-1",
        "1--2",
        "1-2-3",
        "0x1",
        "1.5",
        "1;2",
        "²",
        "\uff11",
        str(MAX_CPUS),
        f"0-{MAX_CPUS}",
        "9" * 5000,
    ],
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"CPU list|integer string"):
        CpuSet.parse(text)


@pytest.mark.parametrize("cpu", [-1, MAX_CPUS])
def test_an_id_out_of_range_is_refused(cpu: int) -> None:
    with pytest.raises(ValueError, match="CPU id"):
        CpuSet.of([cpu])
