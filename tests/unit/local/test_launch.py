"""How a pod runs on this host, as data: cgroups built from checked parts, settings by class."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods_rig import record

from shared.adapters.local.launch import launch_document, start_writes
from shared.adapters.local.pod_user import PodUser
from shared.contracts.pod import QosClass
from shared.core.cgroups.knobs import Knob, Write
from shared.core.cgroups.layout import container_group, pod_group
from shared.core.pods.limits import unsaid_memory_bytes

MIB, GIB = 1 << 20, 1 << 30
UNSAID = unsaid_memory_bytes(GIB)
NOBODY = PodUser(65534, 65534, (65534,), "nobody", "/nonexistent")


def _writes(qos: str, **amounts: Any) -> list[tuple[Knob, str | int]]:
    pod = record("web", qos=qos, **amounts).pod
    inner = container_group(pod, "main")
    return [
        (write.knob, write.value)
        for write in start_writes(pod, top="sublet", machine_bytes=GIB)
        if write.group == inner
    ]


@pytest.mark.parametrize(
    ("qos", "amounts", "expected"),
    [
        ("shared_cores", {"cpu_request_millis": 0}, [(Knob.CPU_SHARES, 2)]),
        ("shared_cores", {"cpu_request_millis": 2000}, [(Knob.CPU_SHARES, 2048)]),
        (
            "shared_cores",
            {"cpu_request_millis": 1000, "cpu_limit_millis": 2000, "memory_limit_bytes": MIB},
            [(Knob.CPU_SHARES, 1024), (Knob.CPU_QUOTA, 2000), (Knob.MEMORY_MAX, MIB)],
        ),
        ("shared_cores", {"memory_request_bytes": MIB}, [(Knob.CPU_SHARES, 102)]),
        (
            "reclaimed_cores",
            {"cpu_request_millis": 500, "cpu_limit_millis": 500, "memory_request_bytes": MIB},
            [(Knob.CPU_SHARES, 512), (Knob.MEMORY_MAX, MIB)],
        ),
        (
            "reclaimed_cores",
            {"memory_request_bytes": MIB, "memory_limit_bytes": 2 * MIB},
            [(Knob.CPU_SHARES, 102), (Knob.MEMORY_MAX, 2 * MIB)],
        ),
    ],
    ids=["nothing asked", "request", "limits", "memory request alone", "reclaimed", "reclaimed with a limit"],
)
def test_settings_follow_from_class_and_amounts(
    qos: str, amounts: dict[str, int], expected: list[tuple[Knob, str | int]]
) -> None:
    assert _writes(qos, **amounts) == expected


def test_the_pods_own_weight_is_that_of_its_containers_together() -> None:
    pod = record("web", cpu_request_millis=1500).pod
    twice = pod.model_copy(update={"containers": pod.containers * 2})
    assert start_writes(twice, top="t", machine_bytes=GIB)[0] == Write(pod_group(pod, "t"), Knob.CPU_SHARES, 3072)


@pytest.mark.parametrize(("limits", "together"), [((MIB, 2 * MIB), 3 * MIB), ((MIB, 0), MIB + UNSAID)])
def test_a_reclaimed_pod_as_a_whole_has_its_containers_memory_and_a_bound_where_one_says_none(
    limits: tuple[int, int], together: int
) -> None:
    pod = record("web").pod
    (main,) = pod.containers
    containers = tuple(main.model_copy(update={"name": f"c{n}", "memory_limit_bytes": limit, "memory_request_bytes": 0})
                       for n, limit in enumerate(limits))  # fmt: skip
    writes = start_writes(pod.model_copy(update={"containers": containers}), top="t", machine_bytes=GIB)
    own = {write.knob: write.value for write in writes if write.group == pod_group(pod, "t")}
    assert own.get(Knob.MEMORY_MAX) == together


@given(st.integers(0, 64_000), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_reclaimed_pods_never_get_a_quota_and_never_more_memory_than_said(
    cpu_millis: int, request_bytes: int, limit_bytes: int
) -> None:
    writes = _writes("reclaimed_cores", cpu_limit_millis=cpu_millis, cpu_request_millis=cpu_millis,
                     memory_request_bytes=request_bytes, memory_limit_bytes=limit_bytes)  # fmt: skip
    values = dict(writes)
    assert Knob.CPU_QUOTA not in values
    assert values[Knob.MEMORY_MAX] == (limit_bytes or request_bytes or UNSAID)


def test_the_launch_document_is_json_and_names_only_this_pods_cgroups() -> None:
    made = record("web", "sleep", "1")
    document = json.loads(json.dumps(launch_document(made, NOBODY, {"HOME": "/"}, host_root="/", top="sublet")))
    assert document["group"] == f"sublet/reclaimed_cores/pod{made.pod.uid}"
    (container,) = document["containers"]
    assert container == {
        "name": "main",
        "group": f"{document['group']}/main",
        "command": ["sleep", "1"],
        "env": {},
        "user": {"uid": 65534, "gid": 65534, "groups": [65534], "env": {"HOME": "/"}},
        "workdir": "/",
        "oom_score_adj": 900,
    }


@pytest.mark.parametrize("qos", get_args(QosClass))
def test_a_pod_of_any_class_can_be_launched_and_reclaimed_work_is_ended_first(qos: QosClass) -> None:
    document = launch_document(record("web", qos=qos), NOBODY, {}, host_root="/", top="sublet")
    (container,) = document["containers"]
    assert (container["oom_score_adj"] > 0) == (qos == "reclaimed_cores")
