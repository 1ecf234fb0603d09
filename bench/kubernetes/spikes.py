"""From the moment a tenant wakes to a smaller cpuset of a batch pod, read back from kubelet's groups."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowd import RECLAIMED, TENANT, pod
from kube_rig.cluster import Cluster
from kube_rig.pods import container_status
from rig_parts import until

from bench.kubernetes.cost import wait
from bench.kubernetes.crowds import crowded
from bench.rigs.disturbance import Tries, Watch
from bench.rigs.processes import busy_neighbours
from bench.rigs.report import Row, observed, p50_p99, progress
from shared.core.cpus.cpuset import CpuSet

QUICK_RETURN: dict[str, Any] = {"settings": {"advisor": {"max_ramp_down_step_cpus": 64, "min_ramp_down_period_s": 0.1}}}
"""Only the way back is quicker than by default, so that many spikes fit into minutes."""
BUSY_S, RETURN_LIMIT_S = 1.5, 120.0
BEFORE_S, AFTER_S, SETTLE_S = 2.0, 2.0, 15.0
SEED = 11
WATCH_S = 0.002
WEB, BATCH = "spike-web", "spike-batch"
_NEEDED_FIRST = -20
"""The nice value of the thread that watches: a late look would be a late reaction."""
_WAKES = f"""
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
while True:
    # It looks around now and then, as servers do: a tenant that uses exactly nothing counts its request.
    if signal.sigtimedwait([signal.SIGUSR1], 0.02) is None:
        continue
    end_s = time.monotonic() + {BUSY_S}
    spinning = []
    for _ in range(os.cpu_count()):
        if not (pid := os.fork()):
            while time.monotonic() < end_s:
                pass
            os._exit(0)
        spinning.append(pid)
    for pid in spinning:
        os.waitpid(pid, 0)
"""


@dataclass
class CpusetWatch:
    """How many CPUs a pod may use, read again and again by a thread of its own, and each change."""

    groups: Sequence[Path]
    changes: list[tuple[float, int]] = field(default_factory=list)
    """When (monotonic seconds) and how many from then on."""
    _end: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator["CpusetWatch"]:
        """Watch for as long as the block lasts."""
        self.changes.append((time.monotonic(), self.read()))
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            thread.join()

    def read(self) -> int:
        """The CPUs at this moment: the fewest of all groups, for one without any has those of the group above."""
        texts = [file.read_text().strip() for group in self.groups if (file := group / "cpuset.cpus").exists()]
        return min((len(CpuSet.parse(text)) for text in texts if text), default=os.cpu_count() or 1)

    @property
    def now(self) -> int:
        """The newest number."""
        return self.changes[-1][1]

    def less_after(self, began_s: float) -> float | None:
        """When there were fewer than at a moment; None: never."""
        before = [cpus for at_s, cpus in self.changes if at_s <= began_s][-1]
        return next((at_s for at_s, cpus in self.changes if at_s > began_s and cpus < before), None)

    def _watch(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NEEDED_FIRST)
        while not self._end.wait(WATCH_S):
            found = self.read()
            if found != self.now:
                self.changes.append((time.monotonic(), found))


def measure_spikes(cluster: Cluster, spikes: int) -> list[Row]:
    """Wake a tenant many times at random moments beside busy batch work, then beside busy processes of others too."""
    web = pod(WEB, cluster.images.base.name, TENANT, "python3", "-c", _WAKES, millis=500)
    batch = pod(BATCH, cluster.images.stress.name, RECLAIMED, "stress", "-c", "2")
    with crowded(cluster, [web, batch]), CpusetWatch(_groups(cluster, BATCH)).running() as watch:
        wait(SETTLE_S, "the first cpusets")
        series = Series(watch, _main_process(cluster), usual_cpus=watch.now, spikes=spikes)
        quiet = series.rows("load spike to changed cpuset", "100 / 250 ms")
        with busy_neighbours():
            return quiet + series.rows("the same while others keep every CPU busy", "- / 500 ms")


@dataclass(frozen=True, slots=True)
class Series:
    """Spikes one after the other, each once the batch pod has what it usually has."""

    watch: CpusetWatch
    tenant: int
    usual_cpus: int
    spikes: int

    def rows(self, what: str, target: str) -> list[Row]:
        """The row of these spikes, again where others disturbed them."""
        tries = Tries[list[float | None]]()
        while tries.wanted():
            chance, load = random.Random(SEED), Watch()
            found = [self._spike(chance, f"{what}: {number + 1} of {self.spikes}") for number in range(self.spikes)]
            tries.add(found, load.disturbance())
        best, disturbance = tries.best
        seen = [took_s for took_s in best if took_s is not None]
        row = Row(f"{what}, p50 / p99", f"{p50_p99(seen)}, {len(best) - len(seen)} without", len(best), target)
        return observed([row], disturbance, len(tries.made))

    def _spike(self, chance: random.Random, what: str) -> float | None:
        """Seconds until there were fewer CPUs; None: nothing changed."""
        self._at_rest(BEFORE_S + chance.random() * BEFORE_S)
        progress(what)
        began_s = time.monotonic()
        os.kill(self.tenant, signal.SIGUSR1)
        time.sleep(BUSY_S + AFTER_S)
        less_s = self.watch.less_after(began_s)
        return None if less_s is None else less_s - began_s

    def _at_rest(self, rest_s: float) -> None:
        """Wait until the batch pod has had its usual CPUs for a while: what has less already cannot show a change."""

        def rested() -> bool:
            since_s, cpus = self.watch.changes[-1]
            return cpus >= self.usual_cpus and time.monotonic() - since_s >= rest_s

        until(rested, RETURN_LIMIT_S, f"{BATCH} on {self.usual_cpus} CPUs for {rest_s:.1f} s")


def _groups(cluster: Cluster, name: str) -> list[Path]:
    """Of a pod and of its containers, in all hierarchies."""
    uid = cluster.get("pod", name)["metadata"]["uid"]
    found = cluster.groups(f"kubepods/**/pod{uid}")
    return [*found, *(below for group in found for below in group.iterdir() if below.is_dir())]


def _main_process(cluster: Cluster) -> int:
    """The tenant's, as this machine numbers it."""
    container = container_status(cluster, WEB, "main")["containerID"].partition("://")[2]
    found = cluster.groups(f"kubepods/**/{container}")
    return min(int(pid) for group in found for pid in (group / "cgroup.procs").read_text().split())
