"""A tenant that cannot get CPU is seen wanting it, on this host's kernel."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Until

from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import View
from services.advisor.core.model.wait import stolen_ratio
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.round.decide import SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.policies import canonical
from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.core.figures.results import LastPass
from services.metrics.core.figures.target import NODE, Target
from services.metrics.core.sample.summary import container_name, summarise
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeSample
from shared.errors import Unavailable
from sublet.replay.traces.frames import sample_of

ROOT = Path("/")
BURN = [sys.executable, "-c", "while True: pass"]
MACHINE = Bounds.of(16, smt=False)
"""The sizes are of a larger machine than the one that may run this."""
POD = Pod(uid="aa", namespace="shop", name="web", containers=(Container(name="main"),))
pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]


@pytest.fixture
def group() -> Iterator[str]:
    """A cgroup of a name that nobody else has; it is removed with what runs in it."""
    cgroups, name = Cgroups(ROOT), f"sublettest{uuid.uuid4().hex[:12]}"
    try:
        cgroups.make(name)
    except (OSError, Unavailable) as error:
        pytest.skip(f"cannot make cgroups here: {error}")
    try:
        yield name
    finally:
        cgroups.remove(name)


@contextlib.contextmanager
def spinning(tasks: int, cpu: int, group: str = "") -> Iterator[None]:
    """Processes that each want a whole CPU and share this one."""
    processes = [subprocess.Popen(BURN) for _ in range(tasks)]
    try:
        for process in processes:
            os.sched_setaffinity(process.pid, {cpu})
            if group:
                Cgroups(ROOT).attach(group, process.pid)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


class Watched:
    """Samples of the tenant in a group, each over all the time since the first one."""

    def __init__(self, group: str, pod: Pod) -> None:
        targets = [
            NODE,
            Target("pool", "share", group),
            Target("container", container_name(pod, "main"), group, "share"),
        ]
        self._collector = Collector(
            HostReader(ROOT, Cgroups(ROOT)), known_sources(), lambda pods: targets, time.monotonic
        )
        self._pod = pod
        self._first = self._pass(LastPass())[1]

    def sample(self) -> NodeSample:
        return sample_of("node1", 1, 0.0, self._pass(self._first)[0])

    def _pass(self, before: LastPass) -> tuple[dict[str, object], LastPass]:
        collected = self._collector.collect([self._pod])
        assert not collected.failures
        return summarise(before, collected.readings, self._collector.offered, [self._pod], time.monotonic())


def demanded_cores(view: View) -> float:
    """What canonical asks for, whose own rule looks at use and slow averages alone."""
    chosen = ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings())
    return decide(view, 0.0, chosen, SizingRules(), None).demand.cores


@pytest.mark.parametrize("of_host", [pytest.param(0, id="alone"), pytest.param(1, id="beside a process of the host")])
async def test_a_tenant_of_three_tasks_on_one_cpu_is_seen_wanting_three(group: str, until: Until, of_host: int) -> None:
    cpu = min(os.sched_getaffinity(0))
    found: dict[str, Any] = {}
    with spinning(3, cpu, group), spinning(of_host, cpu):
        watched = Watched(group, POD)

        def settled() -> bool:
            """The kernel adds a delay up when it ends: over the first milliseconds it says little."""
            sample = watched.sample()
            node, view = sample.node_reading, view_of(sample, MACHINE)
            found.update(view=view, here=1 - stolen_ratio(node.cpu_usage_cores, node.cpu_steal_cores))
            wanted = (view.tenants_usage_cores or 0.0) + (view.signs.waiting_tasks or 0.0)
            return abs(wanted - 3 * found["here"]) < 0.3 and (view.tenants_usage_cores or 9.0) < 1.2

        await until(settled)
    assert demanded_cores(found["view"]) > 3 * found["here"] - 0.3
