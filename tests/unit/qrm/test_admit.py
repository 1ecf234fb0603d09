"""qrm answers before a pod starts: what it would get, or why it cannot have it; nothing changes by asking."""

import asyncio
import json
from pathlib import Path

import pytest
from qrm_world import NODE, TUTORIAL_NODE, Run
from qrm_world import Node as World

from services.qrm.core.admission.admit import admit
from services.qrm.core.placement.arrangement import Node, arrange_floor
from shared.contracts.admission import AdmissionAsked, AdmissionTold
from shared.contracts.bus.subjects import admit_subject
from shared.contracts.pod import Container, Pod
from shared.core.cpus.cpuset import CpuSet

BOUND = {"katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}'}
EXCLUSIVE = {"katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true", "numa_exclusive": "true"}'}
ONE_NODE = {**BOUND, "katalyst.kubewharf.io/cpu_enhancement": '{"katalyst.kubewharf.io/numa_number": "1"}'}
GIB = 1 << 30


def pod(
    name: str, cores: int, annotations: dict[str, str] = BOUND, qos: str = "dedicated_cores", memory: int = 0
) -> Pod:
    amounts = Container(name="c", cpu_request_millis=1000 * cores, memory_request_bytes=memory)
    return Pod(uid=name, name=name, qos=qos, containers=(amounts,), annotations=annotations)


def asked(*new: Pod, there: tuple[Pod, ...] = ()) -> AdmissionTold:
    node = Node(TUTORIAL_NODE, {0: 8 * GIB, 1: 8 * GIB}, there)
    return admit(node, new, lambda node: arrange_floor(node, CpuSet()))


def test_a_pod_that_fits_is_told_its_cpus() -> None:
    told = asked(pod("a", 4))
    assert told.refused == {}
    assert len(CpuSet.parse(told.cpus["default/a"])) == 4


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (pod("a", 100), "CPUs"),
        (pod("a", 4, memory=17 * GIB), "NUMA"),
        (pod("a", 25, ONE_NODE), "NUMA"),
    ],
    ids=["more than there is", "more memory than there is", "one node is too small"],
)
def test_a_pod_that_cannot_be_placed_is_refused_with_the_reason(new: Pod, why: str) -> None:
    told = asked(new)
    assert why in told.refused["default/a"]
    assert told.cpus == {}


def test_the_last_of_several_that_do_not_fit_together_is_refused() -> None:
    told = asked(pod("a", 23), pod("b", 23), pod("c", 4))
    assert list(told.refused) == ["default/c"]


def test_no_newcomer_takes_whole_nodes_of_those_who_run() -> None:
    there = (pod("e", 20), pod("f", 20))
    told = asked(pod("a", 20, EXCLUSIVE), there=there)
    assert list(told.refused) == ["default/a"]


@pytest.mark.parametrize(
    ("new", "refused"),
    [
        pytest.param([pod("a", 30)], {"a": "default/e would lose the CPUs that it has"}, id="only in its place"),
        pytest.param([pod("a", 30), pod("b", 40)], {"a": "default/e would lose", "b": "no set of nodes"}, id="both"),
        pytest.param([pod("a", 10)], {}, id="beside it"),
    ],
)
def test_nobody_who_runs_loses_his_place_to_a_newcomer(new: list[Pod], refused: dict[str, str]) -> None:
    """The second of those who run asks for more memory than there is: what it never had it cannot lose."""
    there = (pod("e", 20, BOUND, "shared_cores"), pod("f", 2, memory=17 * GIB))
    told = asked(*new, there=there)
    assert told.refused.keys() == {f"default/{name}" for name in refused}
    assert all(why in told.refused[f"default/{name}"] for name, why in refused.items())


def test_asking_over_the_bus_changes_nothing(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with World(tmp_path) as world:
            before = await world.hear(world.advice(6, 42))
            question = AdmissionAsked(pods=(pod("a", 4), pod("b", 100))).model_dump_json().encode()
            told = AdmissionTold.model_validate_json(await world.bus.request(admit_subject(NODE), question))
            assert len(CpuSet.parse(told.cpus["default/a"])) == 4
            assert "default/b" in told.refused
            await asyncio.sleep(3.1)
            assert world.last.pools == before.pools

    virtual(story())


def test_a_question_that_cannot_be_read_is_refused_whole(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with World(tmp_path) as world:
            answer = json.loads(await world.bus.request(admit_subject(NODE), b'{"pods": [{"name": "a"}]}'))
            assert "uid" in answer["refused"][""]

    virtual(story())
