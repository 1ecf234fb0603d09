"""What every calculator keeps to on every machine: regular, hybrid and odd ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import irregular, regular, takes

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.balanced import take_by_numa_balance
from shared.core.cpus.taking.by_topology import take_by_topology
from shared.core.cpus.topology import Topology, UniformShape
from shared.errors import Refused
from shared.whatif.decisions import decisions
from sublet.reference.distributed import take_distributed
from sublet.reference.packed import take_packed

quick = settings(max_examples=50)
Take = tuple[Topology, CpuSet, int]
Calculator = Callable[[Topology, CpuSet, int], CpuSet]
CALCULATORS: dict[str, Calculator] = {
    "balance": take_by_numa_balance,
    "balance, reverse": lambda *take: take_by_numa_balance(*take, reverse=True),
    "balance, threads": lambda *take: take_by_numa_balance(*take, granularity="thread"),
    "topology": take_by_topology,
    "topology, L3": lambda *take: take_by_topology(*take, align_l3=True),
    "packed": take_packed,
    "distributed": take_distributed,
    "distributed, pairs": lambda *take: take_distributed(*take, group_cpus=2),
}
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("take_by_numa_balance", {"granularity": "thread", "reverse": True}),
    ("take_by_numa_balance", {}),
    ("take_by_topology", {"align_l3": True}),
    ("take_by_topology", {}),
    ("take_packed", {}),
    ("take_distributed", {"group_cpus": 2}),
    ("take_distributed", {}),
]
every = pytest.mark.parametrize("calculator", CALCULATORS.values(), ids=CALCULATORS)
every_kind = pytest.mark.parametrize(("kind", "options"), KINDS, ids=str)
CASES = [
    case
    for line in (Path(__file__).parents[3] / "cases/placement.jsonl").read_text().splitlines()
    if (case := json.loads(line))["kind"].startswith(("take_", "free_"))
]


def ask(
    kind: str,
    machine: Topology,
    available: CpuSet,
    count: int,
    options: dict[str, Any],
    other: dict[str, Any] | None = None,
) -> Any:
    rows = [[cpu.id, cpu.numa, cpu.socket, cpu.core, cpu.l3] for cpu in machine.cpus]
    inputs = {"topology": {"cpus": rows}, "available": str(available), "request_cpus": count} | options | (other or {})
    known = decisions()[kind]
    return known.function(known.inputs.model_validate_json(json.dumps(inputs)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_worked_case_is_answered_as_printed(case: dict[str, Any]) -> None:
    known = decisions()[case["kind"]]
    answer = known.function(known.inputs.model_validate_json(json.dumps(case["inputs"]))).model_dump()
    assert {name: answer[name] for name in case["outputs"]} == case["outputs"]


@every
@quick
@given(take=takes())
def test_exactly_the_count_is_taken_and_only_from_what_is_available(calculator: Calculator, take: Take) -> None:
    machine, available, count = take
    taken = calculator(machine, available, count)
    assert len(taken) == count
    assert taken <= available


@every
@quick
@given(take=takes(), more=st.integers(1, 5))
def test_more_than_there_is_is_refused_by_its_code(calculator: Calculator, take: Take, more: int) -> None:
    machine, available, _ = take
    with pytest.raises(Refused) as refused:
        calculator(machine, available, len(available) + more)
    assert refused.value.reason == "not_enough_cpus"


@every_kind
@quick
@given(take=takes(), random=st.randoms(use_true_random=False))
def test_what_is_taken_and_what_remains_part_the_available_whatever_the_order_of_rows(
    kind: str, options: dict[str, Any], take: Take, random: Any
) -> None:
    machine, available, count = take
    answer = ask(kind, machine, available, count, options)
    taken, remaining = CpuSet.parse(answer.cpuset), CpuSet.parse(answer.remaining)
    assert (taken | remaining, taken & remaining) == (available, CpuSet())
    rows = [[cpu.id, cpu.numa, cpu.socket, cpu.core, cpu.l3] for cpu in machine.cpus]
    random.shuffle(rows)
    assert ask(kind, machine, available, count, options, {"topology": {"cpus": rows}}) == answer


@every_kind
@quick
@given(take=takes())
def test_an_error_takes_nothing_and_leaves_everything(kind: str, options: dict[str, Any], take: Take) -> None:
    machine, available, _ = take
    answer = ask(kind, machine, available, len(available) + 1, options)
    assert (answer.error, answer.cpuset, answer.remaining) == ("not_enough_cpus", "", str(available))


def broken(machine: Topology, available: CpuSet, taken: CpuSet) -> int:
    """Cores that were free and of which only a part was taken."""
    free = [core for core in machine.cores.values() if core <= available]
    return sum(bool(core & taken) and not core <= taken for core in free)


@pytest.mark.parametrize("name", ["topology", "topology, L3", "packed"])
@quick
@given(take=takes())
def test_at_most_one_free_core_is_broken(name: str, take: Take) -> None:
    machine, available, count = take
    assert broken(machine, available, CALCULATORS[name](machine, available, count)) <= 1


@pytest.mark.parametrize("name", ["balance", "balance, reverse"])
@quick
@given(take=takes(regular(max_threads=2)))
def test_balance_breaks_at_most_one_free_core_of_two_threads_while_free_cores_suffice(name: str, take: Take) -> None:
    machine, available, count = take
    whole = sum(len(core) for core in machine.cores.values() if core <= available)
    if count <= whole:
        assert broken(machine, available, CALCULATORS[name](machine, available, count)) <= 1


@pytest.mark.parametrize("name", ["topology", "packed", "balance"])
@quick
@given(take=takes())
def test_a_free_core_is_left_only_if_it_is_larger_than_what_whole_cores_did_not_give(name: str, take: Take) -> None:
    machine, available, count = take
    taken = CALCULATORS[name](machine, available, count)
    free = [core for core in machine.cores.values() if core <= available]
    whole = sum(len(core) for core in free if core <= taken)
    assert all(core <= taken or len(core) > count - whole for core in free)


@quick
@given(takes(irregular()))
def test_with_alignment_at_most_one_l3_group_is_taken_in_part_unless_a_socket_goes_whole(take: Take) -> None:
    machine, available, count = take
    if any(cpus <= available and len(cpus) <= count for cpus in machine.sockets.values()):
        return
    taken = take_by_topology(machine, available, count, align_l3=True)
    parts = [(group & available, group & taken) for group in machine.l3_groups.values()]
    assert sum(bool(got) and got != there for there, got in parts) <= 1


@every
@quick
@given(take=takes())
def test_taking_all_takes_all(calculator: Calculator, take: Take) -> None:
    machine, available, _ = take
    assert calculator(machine, available, len(available)) == available


@pytest.mark.parametrize(
    ("kind", "change", "names"),
    [
        ("take_by_topology", {"align_l3": 1}, "align_l3"),
        ("take_distributed", {"group_cpus": 0}, "group_cpus"),
        ("take_distributed", {"group_cpus": 1.5}, "group_cpus"),
        ("take_packed", {"available": "0-99"}, "available"),
        ("take_packed", {"group_cpus": 1}, "group_cpus"),
    ],
    ids=["number for bool", "no group", "half a group", "a CPU that the machine has not", "a field of another kind"],
)
def test_an_impossible_question_is_refused_and_names_its_field(kind: str, change: dict[str, Any], names: str) -> None:
    machine = Topology.uniform(UniformShape(sockets=1, numa_per_socket=1, cores_per_numa=2, threads=2))
    with pytest.raises(ValueError, match=names):
        ask(kind, machine, machine.all, 2, change)
