"""Quotas that move on the real v1 kernel of this host: a throttled task has more, and kubelet's quotas return."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from slow_machines import patience_s

from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.kernel.moved_quotas import MovedQuotas
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.isolation.quota_burst import QuotaBurstRules
from services.qrm.core.isolation.quota_pods import BurstInput, QuotaBursts
from services.qrm.former_values import FormerValues
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.text.kernel_text import key_values

V1 = os.geteuid() == 0 and os.access("/sys/fs/cgroup/cpuset/cgroup.procs", os.W_OK)
pytestmark = [pytest.mark.root, pytest.mark.skipif(not V1, reason="needs root and a writable cgroup v1")]
POD = Pod(uid="a" * 8, name="a", kube_qos="Burstable", containers=(
    Container(name="c", cpu_limit_millis=100, id=f"docker://{'c' * 64}"),
    Container(name="d", cpu_limit_millis=50, id=f"docker://{'d' * 64}")))  # fmt: skip
KUBELETS = [150, 100, 50]
PATIENCE_S = patience_s(60.0)


class Throttled:
    """A pod's real groups with kubelet's quotas, and a task in one of them that never sleeps."""

    def __init__(self, cgroups: Cgroups, top: str, folder: Path) -> None:
        self.cgroups, self.layout, self.folder = cgroups, KubeletLayout("cgroupfs", top), folder
        self.groups = [
            self.layout.pod_group(POD),
            *(self.layout.container_group(POD, one) or "" for one in POD.containers),
        ]
        for group, millis in zip(self.groups, KUBELETS, strict=True):
            cgroups.make(group)
            cgroups.write(group, Knob.CPU_QUOTA, millis)
        self.bursts, self.seq = QuotaBursts(), 0
        self.moved = self.another()

    def another(self) -> MovedQuotas:
        former = FormerValues(FormerValuesFile(self.folder, "f00d"), self.cgroups.exists)
        former.resume()
        return MovedQuotas(CgroupWriter(self.cgroups, self.layout.top), self.layout, former)

    def periods(self) -> tuple[int, int]:
        """Periods in which the first container was throttled, and all."""
        text = self.cgroups.text(self.groups[1], "cpu.stat", "cpu") or ""
        found = key_values(text, ("nr_throttled", "nr_periods"))
        return found["nr_throttled"], found["nr_periods"]

    def throttled_ratio(self) -> float:
        """The ratio once the task gets its share: beside others it may wait for a CPU first."""
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            throttled, periods = self.periods()
            while (now := self.periods())[1] < periods + 3 and time.monotonic() < end_s:
                time.sleep(0.02)
            if now[0] - throttled == now[1] - periods > 0:
                return 1.0
        raise AssertionError("the task is not throttled")

    def step(self, ratio: float) -> list[int]:
        """One step on a sample with this ratio; the quotas in force then."""
        self.seq += 1
        reading = PodReading(pod=POD, containers=(ContainerReading(name="c", throttled_ratio=ratio),))
        node = NodeReading(online_cpus="0-9", cpu_usage_cores=0.5)
        sample = NodeSample.model_validate(
            {"node": "n", "boot_id": "0" * 16, "seq": self.seq, "sent_at": "2026-01-01T00:00:00Z", "window_s": 2.0,
             "node_reading": node, "pods": [reading]}
        )  # fmt: skip
        rules = QuotaBurstRules(enabled=True, hold_s=0)
        self.bursts.step([POD], BurstInput(sample, 0.1, 2.0 * self.seq), rules, self.layout)
        assert self.moved.settle([POD], self.bursts.raised()) == []
        return self.quotas()

    def quotas(self) -> list[int]:
        return [int(self.cgroups.read(group, Knob.CPU_QUOTA) or 0) for group in self.groups]


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Throttled]:
    top, cgroups = f"sublet-test-{uuid.uuid4().hex[:8]}", Cgroups(Path("/"))
    made = Throttled(cgroups, top, tmp_path)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as task:
        try:
            cgroups.attach(made.groups[1], task.pid)
            yield made
        finally:
            task.kill()
            task.wait()
    assert cgroups.remove(top)


def test_a_throttled_task_gets_more_and_kubelets_quotas_return(pod: Throttled) -> None:
    found = [pod.step(pod.throttled_ratio()) for _ in range(3)]
    assert found == [[170, 120, 50], [194, 144, 50], [223, 173, 50]]
    # Given back by a life that knows no more than what is on record.
    pod.moved = pod.another()
    assert pod.moved.settle([POD], {}) == []
    assert pod.quotas() == KUBELETS


def test_what_is_calm_falls_back_step_by_step(pod: Throttled) -> None:
    for _ in range(3):
        pod.step(1.0)
    assert [pod.step(0.0) for _ in range(3)] == [[188, 138, 50], [160, 110, 50], KUBELETS]
    assert not pod.moved.former


def test_v1_takes_every_write_in_its_order_also_with_a_burst(pod: Throttled) -> None:
    top, c, d = pod.groups
    for group, millis in zip(pod.groups, KUBELETS, strict=True):
        pod.cgroups.write(group, Knob.CPU_BURST, millis)
    for raised in ({c: 300}, {d: 150}, {c: 250, d: 60}, {}):
        assert pod.moved.settle([POD], raised) == []
        own = [raised.get(c, 100), raised.get(d, 50)]
        assert pod.quotas() == [sum(own), *own]
    assert pod.cgroups.read(top, Knob.CPU_BURST) in (None, 150)
