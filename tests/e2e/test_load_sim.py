"""The quick start's load eviction on the simulated 48-CPU machine: it works as printed, with nothing switched on."""

from typing import Any

import pytest

from sublet.sim.report import Report
from sublet.sim.run import run_scenario
from sublet.sim.scenario import read_scenario

BY_LOAD = "reason: met threshold in scope: cpu.load.1min.container from plugin: cpu-pressure-eviction-plugin"
SHARED = "shared-large-pod-2"


def pod(name: str, qos: str, **requests: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"katalyst.kubewharf.io/qos_level": qos}},
        "spec": {
            "containers": [
                {
                    "name": "stress",
                    "command": ["stress", "-c", "1"],
                    "resources": {"requests": requests, "limits": requests},
                }
            ]
        },
    }


def stress(at_s: float, threads: int) -> dict[str, Any]:
    return {"at_s": at_s, "exec": {"pod": SHARED, "command": ["stress", "-c", str(threads)]}}


@pytest.fixture(scope="module", params=[1, 2], ids=["cgroup-v1", "cgroup-v2"])
def report(request: pytest.FixtureRequest) -> Report:
    reclaimed = {
        "resource.katalyst.kubewharf.io/reclaimed_millicpu": "12k",
        "resource.katalyst.kubewharf.io/reclaimed_memory": "24Gi",
    }
    steps = [
        {
            "at_s": 10,
            "apply": [
                pod(SHARED, "shared_cores", cpu="24", memory="48Gi"),
                pod("reclaimed-large-pod-1", "reclaimed_cores", **reclaimed),
            ],
        },
        stress(60, 50),
        {"at_s": 399, "expect": {"evictions": 0}},
        stress(400, 100),
        {
            "at_s": 400,
            "within_s": 300,
            "expect": {
                "evictions": 1,
                "events": [
                    {"phase": "created", "pod": SHARED, "message": f"Successfully create eviction; {BY_LOAD}"},
                    {
                        "phase": "succeeded",
                        "pod": SHARED,
                        "message": f"Evicted pod has been deleted physically; {BY_LOAD}",
                    },
                ],
                "pods": ["reclaimed-large-pod-1"],
            },
        },
    ]
    machine = {"cgroup_version": request.param}
    return run_scenario(read_scenario({"name": "load", "machine": machine, "steps": steps}, source="test"))


def test_the_pod_with_the_most_threads_goes_above_the_hard_threshold_and_not_above_the_soft_one(report: Report) -> None:
    assert report.problems == []


def test_a_load_that_has_just_come_evicts_nobody(report: Report) -> None:
    """Eight of ten samples of ten seconds must be above, of a load that follows in a minute."""
    assert min(row.t_s for row in report.rows if row.event) >= 400 + 70
