"""Taking CPUs balanced over NUMA nodes: the worked examples, the refusals, and laws on any machine."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.balanced import take_by_numa_balance
from shared.core.cpus.topology import Cpu, Topology, UniformShape
from shared.errors import Refused
from shared.whatif.decisions import decisions
from shared.whatif.taking import BalanceQuestion, take_by_numa_balance_answer

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
FOUR_NUMA = Topology.uniform(UniformShape(sockets=2, numa_per_socket=2, cores_per_numa=2, threads=2))
HYBRID = Topology.of(
    [Cpu(cpu, 0, 0, cpu // 2, 0) for cpu in range(4)] + [Cpu(cpu, 0, 0, cpu, 1) for cpu in range(4, 8)]
)
"""Two cores of two threads (0-1, 2-3), four of one (4-7)."""
CASES = [
    case
    for line in (Path(__file__).parents[3] / "cases/placement.jsonl").read_text().splitlines()
    if (case := json.loads(line))["kind"] == "take_by_numa_balance"
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_worked_case_is_answered_as_printed(case: dict[str, Any]) -> None:
    answer = take_by_numa_balance_answer(BalanceQuestion.model_validate_json(json.dumps(case["inputs"]))).model_dump()
    assert {name: answer[name] for name in case["outputs"]} == case["outputs"]


@pytest.mark.parametrize(
    ("topology", "available", "count", "options", "taken"),
    [
        pytest.param(TUTORIAL_NODE, "0-47", 42, {}, "0-10,12-21,24-34,36-45", id="the tutorial's 42"),
        pytest.param(TUTORIAL_NODE, "0-47", 40, {}, "0-9,12-21,24-33,36-45", id="the tutorial's 40"),
        pytest.param(TUTORIAL_NODE, "0-47", 44, {}, "0-10,12-22,24-34,36-46", id="the tutorial's idle 44"),
        pytest.param(TUTORIAL_NODE, "0-47", 5, {}, "0-1,12,24,36", id="an odd count breaks a core of the first node"),
        pytest.param(TUTORIAL_NODE, "0-47", 6, {"granularity": "thread"}, "0-2,12-14", id="thread by thread"),
        pytest.param(
            TUTORIAL_NODE, "0-47", 6, {"reverse": True}, "10-11,23,34-35,47", id="reverse inside the node only"
        ),
        pytest.param(TUTORIAL_NODE, "0-47", 0, {}, "", id="nothing wanted"),
        pytest.param(TUTORIAL_NODE, "0-47", -3, {}, "", id="less than nothing wanted"),
        pytest.param(TUTORIAL_NODE, "0-23", 4, {}, "0-1,12-13", id="no core is whole, so single CPUs"),
        pytest.param(FOUR_NUMA, "0-15", 4, {"granularity": "thread"}, "0,2,4,6", id="the reserve of four nodes"),
        pytest.param(FOUR_NUMA, "1,3-15", 4, {"granularity": "thread"}, "1,3-4,6", id="reclaim beside that reserve"),
        pytest.param(FOUR_NUMA, "1,8-9", 1, {}, "1", id="one CPU inside a node"),
        pytest.param(HYBRID, "0-7", 5, {}, "0-4", id="cores of two threads and of one, by id"),
        pytest.param(HYBRID, "0-7", 1, {}, "4", id="one CPU is a whole core there, none is broken"),
        pytest.param(HYBRID, "0-3", 1, {}, "0", id="a core is broken where no small one is left"),
    ],
)
def test_taking_gives_exactly_these_cpus(
    topology: Topology, available: str, count: int, options: dict[str, Any], taken: str
) -> None:
    assert str(take_by_numa_balance(topology, CpuSet.parse(available), count, **options)) == taken


def test_too_few_cpus_are_refused_with_both_numbers() -> None:
    with pytest.raises(Refused, match=r"5 CPUs wanted, 2 available \(0-1\)") as refused:
        take_by_numa_balance(TUTORIAL_NODE, CpuSet.parse("0-1"), 5)
    assert refused.value.reason == "not_enough_cpus"


def test_too_few_cpus_take_nothing_and_leave_everything() -> None:
    question = BalanceQuestion.model_validate(
        {"topology": {"uniform": {"sockets": 1, "numa_per_socket": 1, "cores_per_numa": 1, "threads": 2,
                                  "numbering": "adjacent"}}, "available": "0-1", "request_cpus": 3}
    )  # fmt: skip
    answer = take_by_numa_balance_answer(question)
    assert (answer.error, answer.cpuset, answer.remaining) == ("not_enough_cpus", "", "0-1")


def test_the_order_of_the_rows_of_a_machine_means_nothing() -> None:
    rows = [[cpu.id, cpu.numa, cpu.socket, cpu.core, cpu.l3] for cpu in TUTORIAL_NODE.cpus]
    answers = {
        take_by_numa_balance_answer(
            BalanceQuestion.model_validate({"topology": {"cpus": order}, "available": "0-47", "request_cpus": 42})
        ).cpuset
        for order in (rows, rows[::-1], rows[20:] + rows[:20])
    }
    assert answers == {"0-10,12-21,24-34,36-45"}


_UNIFORM = {"sockets": 1, "numa_per_socket": 1, "cores_per_numa": 2, "threads": 2, "numbering": "split"}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        pytest.param({"available": "0-99"}, "available", id="a CPU that the machine has not"),
        pytest.param({"available": "3-1"}, "available", id="a list that descends"),
        pytest.param({"request_cpus": "4"}, "request_cpus", id="text for a number"),
        pytest.param({"granularity": "socket"}, "granularity", id="an unknown granularity"),
        pytest.param({"colour": 1}, "colour", id="an unknown field"),
        pytest.param({"topology": {}}, "topology", id="no machine"),
        pytest.param({"topology": {"uniform": _UNIFORM, "cpus": [[0, 0, 0, 0, 0]]}}, "topology", id="two machines"),
        pytest.param({"topology": {"cpus": []}}, "topology", id="a machine without CPUs"),
        pytest.param({"topology": {"cpus": [[0, 0, 0, 0]]}}, "topology.cpus.0", id="a row too short"),
        pytest.param({"topology": {"cpus": [[0, 0, 0, 0, -1], [0, 0, 0, 0, -1]]}}, "topology", id="a CPU twice"),
        pytest.param(
            {"topology": {"cpus": [[0, 0, 0, 0, -1], [1, 1, 0, 0, -1]]}}, "topology", id="a core in two nodes"
        ),
        pytest.param({"topology": {"cpus": [[-1, 0, 0, 0, -1]]}}, "topology", id="a negative CPU"),
        pytest.param({"topology": {"uniform": _UNIFORM | {"sockets": 8000}}}, "topology.uniform", id="too large"),
        pytest.param({"topology": {"uniform": _UNIFORM | {"threads": 0}}}, "topology.uniform.threads", id="no thread"),
    ],
)
def test_an_impossible_question_is_refused_and_names_its_field(change: dict[str, Any], names: str) -> None:
    question = {"topology": {"uniform": _UNIFORM}, "available": "0-3", "request_cpus": 2}
    with pytest.raises(ValidationError) as refused:
        BalanceQuestion.model_validate(question | change)
    assert names in "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in refused.value.errors())


def test_the_decision_is_registered_under_its_contract_name() -> None:
    known = decisions()["take_by_numa_balance"]
    assert (known.area, known.meaning) == ("placement", "Take CPUs round-robin over NUMA nodes.")


@st.composite
def _machines(draw: st.DrawFn) -> Topology:
    """Regular machines of every numbering, now and then with CPUs missing (siblings offline)."""
    whole = Topology.uniform(
        UniformShape(
            sockets=draw(st.integers(1, 2)),
            numa_per_socket=draw(st.integers(1, 2)),
            cores_per_numa=draw(st.integers(1, 6)),
            threads=draw(st.integers(1, 2)),
            numbering=draw(st.sampled_from(("split", "adjacent", "interleaved"))),
        )
    )
    gone = draw(st.sets(st.sampled_from(list(whole.all)), max_size=2))
    return Topology.of([cpu for cpu in whole.cpus if cpu.id not in gone] or whole.cpus)


@st.composite
def _takes(draw: st.DrawFn) -> tuple[Topology, CpuSet, int, str, bool]:
    topology = draw(_machines())
    available = CpuSet.of(draw(st.sets(st.sampled_from(list(topology.all)))))
    count = draw(st.integers(0, len(available)))
    return topology, available, count, draw(st.sampled_from(("core", "thread"))), draw(st.booleans())


@given(_takes())
def test_exactly_the_count_is_taken_and_only_from_what_is_available(
    take: tuple[Topology, CpuSet, int, Any, bool],
) -> None:
    topology, available, count, granularity, reverse = take
    taken = take_by_numa_balance(topology, available, count, granularity=granularity, reverse=reverse)
    assert len(taken) == count
    assert taken <= available


@given(_takes(), st.randoms())
def test_taking_does_not_depend_on_the_order_of_the_cpus(
    take: tuple[Topology, CpuSet, int, Any, bool], random: Any
) -> None:
    topology, available, count, granularity, reverse = take
    rows = list(topology.cpus)
    random.shuffle(rows)
    again = Topology.of(Cpu(cpu.id, cpu.numa, cpu.socket, cpu.core, cpu.l3) for cpu in rows)
    options: dict[str, Any] = {"granularity": granularity, "reverse": reverse}
    assert take_by_numa_balance(topology, available, count, **options) == take_by_numa_balance(
        again, available, count, **options
    )


@given(_takes())
def test_thread_by_thread_no_node_gives_two_more_than_another_that_has_some_left(
    take: tuple[Topology, CpuSet, int, Any, bool],
) -> None:
    topology, available, count, _, reverse = take
    taken = take_by_numa_balance(topology, available, count, granularity="thread", reverse=reverse)
    most = max((len(taken & cpus) for cpus in topology.numas.values()), default=0)
    for cpus in topology.numas.values():
        assert len(taken & cpus) >= most - 1 or not (available & cpus) - taken


@given(_takes())
def test_a_whole_free_core_is_never_broken_while_a_broken_one_could_serve(
    take: tuple[Topology, CpuSet, int, Any, bool],
) -> None:
    topology, available, count, _, reverse = take
    taken = take_by_numa_balance(topology, available, count, reverse=reverse)
    free = [core for core in topology.cores.values() if core <= available]
    whole = sum(len(core) for core in free if core <= taken)
    # A free core that did not go whole was larger than what remained of the need.
    assert all(core <= taken or len(core) > count - whole for core in free)


@pytest.mark.parametrize("count", range(1, 48))
def test_a_larger_pool_contains_the_smaller_one_of_even_size(count: int) -> None:
    smaller = take_by_numa_balance(TUTORIAL_NODE, TUTORIAL_NODE.all, count - count % 2)
    assert smaller <= take_by_numa_balance(TUTORIAL_NODE, TUTORIAL_NODE.all, count + 1 - (count + 1) % 2)
