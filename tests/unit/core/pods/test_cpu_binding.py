"""Koordinator's annotations on the CPUs of a pod: what is read of them, and what a node writes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.core.pods.cpu_binding import (
    NO_BINDING,
    RESOURCE_SPEC,
    RESOURCE_STATUS,
    CpuBinding,
    bound_cpus,
    cpu_binding,
    resource_status,
)

NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=4, threads=2))
CPUS = st.sets(st.integers(0, 15)).map(CpuSet.of)


def read(**said: object) -> CpuBinding:
    return cpu_binding({RESOURCE_SPEC: json.dumps(said)})


@pytest.mark.parametrize(
    ("said", "binding"),
    [
        ({}, NO_BINDING),
        ({"preferredCPUBindPolicy": "FullPCPUs"}, CpuBinding("FullPCPUs")),
        ({"preferredCPUBindPolicy": "Default"}, CpuBinding("FullPCPUs")),
        ({"requiredCPUBindPolicy": "SpreadByPCPUs"}, CpuBinding("SpreadByPCPUs", required=True)),
        ({"requiredCPUBindPolicy": "Default"}, CpuBinding("FullPCPUs", required=True)),
        (
            {"requiredCPUBindPolicy": "FullPCPUs", "preferredCPUBindPolicy": "SpreadByPCPUs"},
            CpuBinding("FullPCPUs", required=True),
        ),
        ({"preferredCPUExclusivePolicy": "PCPULevel"}, CpuBinding(exclusive="PCPULevel")),
        ({"preferredCPUExclusivePolicy": "NUMANodeLevel"}, CpuBinding(exclusive="NUMANodeLevel")),
        ({"preferredCPUExclusivePolicy": "None", "requiredCPUBindPolicy": ""}, NO_BINDING),
    ],
)
def test_a_spec_is_read_as_the_scheduler_reads_it(said: dict[str, str], binding: CpuBinding) -> None:
    assert read(**said) == binding


def test_a_pod_without_the_annotation_wants_nothing() -> None:
    assert cpu_binding({}) == NO_BINDING


@pytest.mark.parametrize("word", ["ConstrainedBurst", "fullpcpus", 7, ["FullPCPUs"], {"a": "b"}])
def test_what_is_required_and_not_known_is_a_refusal_and_what_is_preferred_a_word(word: object) -> None:
    assert "write FullPCPUs or SpreadByPCPUs" in read(requiredCPUBindPolicy=word).refusal
    preferred = read(preferredCPUBindPolicy=word)
    assert (preferred.policy, preferred.refusal, len(preferred.unread)) == (None, "", 1)
    assert "is none" in read(preferredCPUExclusivePolicy=word).unread[0]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"FullPCPUs"', "{" + " " * 600 + "}"])
def test_a_spec_that_cannot_be_read_may_require_something(text: str) -> None:
    assert "write a JSON object" in cpu_binding({RESOURCE_SPEC: text}).refusal


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cpuset": 7}', '{"cpuset": "3-1"}', '{"cpuset": "0-99999999"}', "{}"]
)
def test_a_status_that_cannot_be_read_binds_to_nothing(text: str) -> None:
    assert not bound_cpus({RESOURCE_STATUS: text})


def test_a_status_says_cpus_and_how_many_lie_on_which_numa_node() -> None:
    text = resource_status(CpuSet.parse("0-1,8,4"), NODE.numas)
    assert json.loads(text) == {
        "cpuset": "0-1,4,8",
        "numaNodeResources": [{"node": 0, "resources": {"cpu": "3"}}, {"node": 1, "resources": {"cpu": "1"}}],
    }


@given(CPUS)
def test_what_a_node_writes_it_reads_again(cpus: CpuSet) -> None:
    assert bound_cpus({RESOURCE_STATUS: resource_status(cpus, NODE.numas)}) == cpus


@given(st.text() | st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner)
       | st.dictionaries(st.text(), inner)).map(json.dumps))  # fmt: skip
def test_no_text_breaks_a_reader(text: str) -> None:
    binding = cpu_binding({RESOURCE_SPEC: text})
    assert not (binding.refusal and binding.policy)
    assert bound_cpus({RESOURCE_STATUS: text}) == CpuSet()
