"""The CPUs of a container at admission, class by class, on the 16 CPUs of Katalyst's examples."""

from typing import Any

import pytest

from shared.errors import Refused
from sublet.reference.admission import AdmissionQuestion, admission_allocate

BOX = {"uniform": {"sockets": 2, "numa_per_socket": 2, "cores_per_numa": 2, "threads": 2, "numbering": "split"}}
TUTORIAL_NODE = {
    "uniform": {"sockets": 2, "numa_per_socket": 1, "cores_per_numa": 12, "threads": 2, "numbering": "split"}
}
FRESH = {"topology": BOX, "reserve_pool": "0,2", "reclaim_pool": "1,3-4,6"}


def admit(pod: dict[str, Any], **inputs: Any) -> str | None:
    return admission_allocate(AdmissionQuestion.model_validate({**FRESH, **inputs, "pod": pod})).cpuset


def dedicated(request: float, **more: Any) -> dict[str, Any]:
    return {"qos": "dedicated_cores", "request_cores": request, "numa_binding": True, **more}


@pytest.mark.parametrize(
    ("pod", "inputs", "cpus"),
    [
        ({"qos": "shared_cores", "request_cores": 2}, {}, "1,3-15"),
        ({"qos": "shared_cores"}, {"pods": [{**dedicated(2), "cpuset": "1,9"}]}, "3-8,10-15"),
        ({"qos": "shared_cores", "request_cores": 0.3, "numa_binding": True}, {"hint_numas": [0]}, "1,8-9"),
        ({"qos": "shared_cores", "request_cores": 0.3, "numa_binding": True},
         {"hint_numas": [0], "enable_reclaim": True}, "1"),
        ({"qos": "shared_cores", "request_cores": 0.3, "numa_binding": True},
         {"hint_numas": [0], "enable_reclaim": True, "allow_overlap": True}, "1,8-9"),
        ({"qos": "shared_cores", "request_cores": 9, "numa_binding": True},
         {"hint_numas": [3], "enable_reclaim": True}, "6-7,14-15"),
        ({"qos": "reclaimed_cores"}, {}, "1,3-4,6"),
        ({"qos": "reclaimed_cores", "numa_binding": True}, {"hint_numas": [2]}, "4"),
        ({"qos": "reclaimed_cores"}, {"hint_numas": [2]}, "1,3-4,6"),
        ({"qos": "system_cores"}, {}, "0-15"),
        ({"qos": "system_cores", "cpuset_pool": "reserve"}, {}, "0,2"),
        ({"qos": "system_cores", "cpuset_pool": "batch"},
         {"pods": [{"qos": "shared_cores", "cpuset_pool": "batch", "cpuset": "5,13"}]}, "5,13"),
        ({"qos": "system_cores", "cpuset_pool": "nobody"}, {}, "0-15"),
        ({"qos": "shared_cores", "container": "init"}, {}, None),
        ({"qos": "dedicated_cores", "debug": True}, {}, None),
        (dedicated(2), {"hint_numas": [0]}, "1,9"),
        (dedicated(3), {"hint_numas": [1, 2]}, "3,10-11"),
        (dedicated(4), {"hint_numas": [2, 3]}, "4-5,12-13"),
        (dedicated(4, distribute_evenly_across_numa=True), {"hint_numas": [2, 3]}, "4,6,12,14"),
        (dedicated(1, numa_exclusive=True), {"hint_numas": [1]}, "3,10-11"),
        (dedicated(1), {"hint_numas": [1], "default_numa_exclusive": True}, "3,10-11"),
        (dedicated(1, numa_exclusive=False), {"hint_numas": [2], "default_numa_exclusive": True}, "4"),
        (dedicated(2, full_pcpus_pairing=True), {"hint_numas": [1]}, "3,11"),
        (dedicated(1, container="sidecar"), {"hint_numas": [1], "pods": [{**dedicated(2), "cpuset": "3,11"}]}, "3,11"),
    ],
)  # fmt: skip
def test_each_class_gets_its_cpus(pod: Any, inputs: Any, cpus: Any) -> None:
    assert admit(pod, **inputs) == cpus


@pytest.mark.parametrize(
    ("pod", "inputs", "code"),
    [
        ({"qos": "shared_cores", "numa_binding": True}, {"hint_numas": [0, 1]}, "numa_hint_not_single"),
        ({"qos": "shared_cores", "numa_binding": True}, {}, "numa_hint_not_single"),
        ({"qos": "dedicated_cores", "request_cores": 1}, {"hint_numas": [0]}, "not_supported"),
        (dedicated(5), {"hint_numas": [3]}, "not_enough_cpus"),
        (dedicated(4, full_pcpus_pairing=True), {"hint_numas": [1]}, "not_enough_whole_cores"),
        (dedicated(5, numa_exclusive=True), {"hint_numas": [3]}, "not_enough_cpus"),
        (dedicated(6, distribute_evenly_across_numa=True), {"topology": BOX, "hint_numas": [0, 3],
                                                             "reserve_pool": "0-1,8"}, "not_enough_cpus"),
        ({"qos": "shared_cores"}, {"reserve_pool": "0-15"}, "not_enough_cpus"),
    ],
)  # fmt: skip
def test_what_cannot_be_met_has_a_code(pod: Any, inputs: Any, code: Any) -> None:
    with pytest.raises(Refused) as refused:
        admit(pod, **inputs)
    assert refused.value.reason == code


def test_bound_shared_pods_of_one_pool_share_what_all_of_them_asked_for() -> None:
    placed = {"qos": "shared_cores", "request_cores": 2, "numa_binding": True, "cpuset": "0-1,24-25"}
    asked = {"qos": "shared_cores", "request_cores": 1, "numa_binding": True}
    inputs = {"topology": TUTORIAL_NODE, "reserve_pool": "", "hint_numas": [0], "enable_reclaim": True}
    assert admit(asked, pods=[placed], **inputs) == "0-2,24-26"
    assert admit(asked, pods=[placed | {"cpuset_pool": "other"}], **inputs) == "2,26"
