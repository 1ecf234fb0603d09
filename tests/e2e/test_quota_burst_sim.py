"""Quotas that move on the simulated machine, through every service: measured, decided, written, and seen."""

import itertools
from typing import Any

import pytest

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import class_group
from sublet.sim.run import SimulationRun, in_virtual_time
from sublet.sim.scenario import read_scenario

LIMIT, MOST = 2000, 6000


def pod(name: str, cpu: str, threads: int) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    command = ["stress", "-c", str(threads)]
    container = {"name": "c", "command": command, "resources": {"requests": amounts, "limits": amounts}}
    said = {"katalyst.kubewharf.io/qos_level": "shared_cores"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": said},
            "spec": {"containers": [container]}}  # fmt: skip


class Watched(SimulationRun):
    """A run that keeps the smallest quota of the tenants' containers after each tick."""

    async def _tick(self) -> None:
        await super()._tick()
        cgroups, home = Cgroups(self.folder / "host"), class_group("shared_cores")
        groups = [f"{home}/{name}/c" for name in cgroups.children(home)]
        found = [int(cgroups.read(group, Knob.CPU_QUOTA) or 0) for group in groups]
        SEEN.append((self.clock.monotonic() - self._start_s, min(found, default=0)))


SEEN: list[tuple[float, int]] = []


class Course:
    """The quota over time."""

    def __init__(self, seen: list[tuple[float, int]]) -> None:
        self.seen = seen

    def at(self, t_s: float) -> int:
        return next(quota for at_s, quota in reversed(self.seen) if at_s <= t_s)

    def between(self, first_s: float, last_s: float) -> list[int]:
        return [quota for at_s, quota in self.seen if first_s <= at_s <= last_s]


@pytest.fixture(scope="module", params=[1, 2], ids=["cgroup-v1", "cgroup-v2"])
def quotas(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Course:
    steps = [
        {"at_s": 10, "apply": [pod("web", "2", 4)]},
        {"at_s": 60, "apply": [pod("large", "40", 40)]},
        {"at_s": 100, "delete": "large"},
        {"at_s": 150, "configure": {"qrm": {"quota_burst": {"enabled": False}}}},
        {"at_s": 170, "expect": {"pods": ["web"]}},
    ]
    document = {"name": "bursts", "machine": {"cgroup_version": request.param}, "steps": steps,
                "settings": {"qrm": {"quota_burst": {"enabled": True}}}}  # fmt: skip
    SEEN.clear()
    run = Watched(read_scenario(document, source="test"), tmp_path_factory.mktemp("bursts"))
    report = in_virtual_time(run.play())
    assert report.problems == []
    return Course(list(SEEN))


def test_a_throttled_tenant_has_more_while_cpus_are_idle(quotas: Course) -> None:
    assert quotas.at(12) == LIMIT
    # Its four threads have all that they want, and no quota rises beyond what throttles somebody.
    assert 4000 <= quotas.at(55) < MOST


def test_it_falls_back_while_another_needs_the_cpus_and_rises_behind_it(quotas: Course) -> None:
    assert quotas.at(95) == LIMIT
    assert quotas.at(145) >= 4000


def test_switched_off_at_runtime_it_has_its_limit(quotas: Course) -> None:
    assert quotas.at(165) == LIMIT


def test_it_stays_between_its_bounds_in_steps(quotas: Course) -> None:
    course = quotas.between(14, 165)
    assert all(LIMIT <= quota <= MOST for quota in course)
    assert all(after <= before * 1.2 + 1 for before, after in itertools.pairwise(course))
