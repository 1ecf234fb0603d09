"""Which containers may save CPU up, and how much."""

import json

import pytest

from services.qrm.core.isolation.burst import burst_percent, burst_values, within_quota
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import Knob
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


GROUP = "sublet/shared_cores/poda1"


def values(*pods: Pod, default: float = 0.0) -> dict[str, int]:
    found = burst_values(pods, OwnLayout(), default)
    assert {knob for _, knob in found} <= {Knob.CPU_BURST}
    return {group: value for (group, _), value in found.items()}


def test_only_containers_with_a_quota_are_written() -> None:
    assert values(pod(cpu_burst_policy="static", cpu_burst_percent="25")) == {f"{GROUP}/c": 500}


def test_a_pod_with_a_quota_may_save_up_what_its_containers_may() -> None:
    both = (Container(name="c", cpu_limit_millis=2000), Container(name="d", cpu_limit_millis=500))
    assert values(Pod(uid="a1", name="p", containers=both), default=50) == {
        GROUP: 1250, f"{GROUP}/c": 1000, f"{GROUP}/d": 250,
    }  # fmt: skip


def test_nothing_is_written_where_nobody_asks() -> None:
    assert values(pod(), pod("reclaimed_cores", cpu_burst_policy="static")) == {}


def test_a_pod_that_closes_it_has_it_taken_away() -> None:
    assert values(pod(cpu_burst_policy="closed"), default=50.0) == {f"{GROUP}/c": 0}


def koordinator(text: str, katalyst: str = "") -> Pod:
    one = pod(cpu_burst_policy=katalyst) if katalyst else pod()
    return one.model_copy(update={"annotations": {**one.annotations, "koordinator.sh/cpuBurst": text}})


@pytest.mark.parametrize(
    ("text", "default", "percent"),
    [
        ('{"policy": "cpuBurstOnly"}', 0, 100),
        ('{"policy": "auto", "cpuBurstPercent": 40}', 0, 40),
        ('{"policy": "auto", "cpuBurstPercent": 1000}', 0, 100),
        ('{"policy": "auto"}', 30, 30),
        ('{"policy": "none"}', 30, 0),
        ('{"policy": "cfsQuotaBurstOnly"}', 30, 0),
        ('{"cpuBurstPercent": 40}', 30, 40),
        ('{"cpuBurstPercent": 40}', 0, 0),
        ('{"policy": "sometimes", "cpuBurstPercent": 0}', 30, 30),
        ('{"policy": ["auto"], "cpuBurstPercent": true}', 30, 30),
        ('{"cpuBurstPercent": 10001}', 30, 30),
        ('{"cpuBurstPercent": 1e999}', 30, 30),
        ("[" * 200, 30, 30),
        ("{", 30, 30),
        ("", 30, 30),
        ("null", 30, 30),
    ],
)
def test_what_koordinators_annotation_says(text: str, default: float, percent: float) -> None:
    assert burst_percent(koordinator(text), default) == percent


def test_katalysts_annotation_goes_before() -> None:
    assert burst_percent(koordinator('{"policy": "auto"}', "closed"), 30) == 0
    assert burst_percent(koordinator('{"policy": "none"}', "default"), 30) == 0


@pytest.mark.parametrize(
    ("millis", "quota_us", "taken"), [(500, 100_000, 500), (1500, 100_000, 1000), (500, None, 0), (5, 0, 0)]
)
def test_the_kernel_takes_no_more_than_the_quota(millis: int, quota_us: int | None, taken: int) -> None:
    assert within_quota(millis, quota_us) == taken
