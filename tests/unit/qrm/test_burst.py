"""Which containers may save CPU up, and how much."""

import json

import pytest

from services.qrm.core.writes.burst import burst_percent, burst_writes
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import Knob, Write
from shared.core.cgroups.layout import OwnLayout

CPU = "katalyst.kubewharf.io/cpu_enhancement"


def pod(qos: str = "shared_cores", limit: int = 2000, **said: str) -> Pod:
    annotations = {CPU: json.dumps(said)} if said else {}
    containers = (Container(name="c", cpu_limit_millis=limit), Container(name="free"))
    return Pod(uid="a1", name="p", qos=qos, containers=containers, annotations=annotations)


@pytest.mark.parametrize(
    ("one", "default", "percent"),
    [
        (pod(), 0.0, 0.0),
        (pod(), 40.0, 40.0),
        (pod(cpu_burst_policy="default"), 40.0, 40.0),
        (pod(cpu_burst_policy="closed"), 40.0, 0.0),
        (pod(cpu_burst_policy="static"), 0.0, 100.0),
        (pod(cpu_burst_policy="static", cpu_burst_percent="25"), 0.0, 25.0),
        (pod(cpu_burst_policy="static", cpu_burst_percent="250"), 0.0, 100.0),
        (pod(cpu_burst_policy="static", cpu_burst_percent="much"), 0.0, 100.0),
        (pod(cpu_burst_policy="dynamic", cpu_burst_percent="25"), 0.0, 25.0),
        (pod("reclaimed_cores", cpu_burst_policy="static"), 40.0, 0.0),
        (pod("reclaimed_cores"), 40.0, 0.0),
    ],
)  # fmt: skip
def test_the_percent_of_the_quota(one: Pod, default: float, percent: float) -> None:
    assert burst_percent(one, default) == percent


def test_only_containers_with_a_quota_are_written() -> None:
    writes = list(burst_writes([pod(cpu_burst_policy="static", cpu_burst_percent="25")], OwnLayout(), 0.0))
    assert writes == [Write("sublet/shared_cores/poda1/c", Knob.CPU_BURST, 500)]


def test_nothing_is_written_where_nobody_asks() -> None:
    assert list(burst_writes([pod(), pod("reclaimed_cores", cpu_burst_policy="static")], OwnLayout(), 0.0)) == []


def test_a_pod_that_closes_it_has_it_taken_away() -> None:
    assert [w.value for w in burst_writes([pod(cpu_burst_policy="closed")], OwnLayout(), 50.0)] == [0]
