"""From the moment a tenant wakes to a smaller limit of batch pods, read back from kubelet's groups."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowd import RECLAIMED, SPIN, TENANT, pod
from kube_rig.cluster import Cluster
from rig_parts import until

from bench.kubernetes.cost import wait
from bench.kubernetes.crowds import crowded
from bench.rigs.disturbance import Tries, Watch
from bench.rigs.report import Row, observed, p50_p99, progress
from services.advisor.core.model.machine import MIN_DISJOINT_CORES
from shared.core.cpus.cpuset import CpuSet

QUICK_RETURN = {"max_ramp_down_step_cpus": 64, "min_ramp_down_period_s": 0.1}
"""Only the way back is quicker than by default, so that many spikes fit into minutes."""
POOLS, QUOTA = "canonical", "koordinator"
"""The default policy moves CPUs between pools; where a machine is too small for that, one with a quota is measured."""
NOISE = 0.9
"""A quota that follows use is never still: less is what is below this part of it."""
BUSY_S, SEEN_LIMIT_S, RETURN_LIMIT_S = 1.5, 3.0, 120.0
BEFORE_S, AFTER_S, SETTLED_S = 2.0, 2.0, 15.0
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
    for _ in range(2):
        if not (pid := os.fork()):
            while time.monotonic() < end_s:
                pass
            os._exit(0)
        spinning.append(pid)
    for pid in spinning:
        os.waitpid(pid, 0)
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the kernel grants a pod: the fewest CPUs and the smallest quota of its groups and of those above."""

    cpus: int
    quota: float

    def less_than(self, other: "Limits") -> bool:
        """Whether something is less."""
        return self.cpus < other.cpus or self.quota < NOISE * other.quota


@dataclass
class LimitWatch:
    """Limits of a pod, read again and again by a thread of its own, and each change of them."""

    groups: Sequence[Path]
    changes: list[tuple[float, Limits]] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator["LimitWatch"]:
        """Watch for as long as the block lasts."""
        self.changes.append((time.monotonic(), self.read()))
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            thread.join()

    def read(self) -> Limits:
        """The limits at this moment."""
        texts = [text for group in self.groups for text in _texts(group)]
        cpus = [len(CpuSet.parse(text)) for name, text in texts if name == "cpus" and text]
        quotas = [float(text) for name, text in texts if name == "quota" and float(text) > 0]
        return Limits(min(cpus, default=sys.maxsize), min(quotas, default=float("inf")))

    @property
    def now(self) -> Limits:
        """The newest ones."""
        return self.changes[-1][1]

    def less_after(self, began_s: float) -> float | None:
        """When there was less than at a moment; None: not yet."""
        before = [limits for at_s, limits in self.changes if at_s <= began_s][-1]
        return next((at_s for at_s, limits in self.changes if at_s > began_s and limits.less_than(before)), None)

    def _watch(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NEEDED_FIRST)
        while not self._end.wait(WATCH_S):
            found = self.read()
            if found != self.now:
                self.changes.append((time.monotonic(), found))


def _texts(group: Path) -> Iterator[tuple[str, str]]:
    """Those limits that a group has, in either version's files."""
    for name, kind in (("cpuset.cpus", "cpus"), ("cpu.cfs_quota_us", "quota"), ("cpu.max", "quota")):
        try:
            text = (group / name).read_text().split()
        except OSError:
            continue
        yield kind, {"max": "-1"}.get(text[0], text[0]) if text else ""


def measure_spikes(cluster: Cluster, policy: str, spikes: int) -> list[Row]:
    """Wake a tenant many times at random moments beside busy batch work, then beside busy processes of others too."""
    stress = cluster.images.stress.name
    web = pod(WEB, cluster.images.base.name, TENANT, "python3", "-c", _WAKES, millis=500)
    batch = pod(BATCH, stress, RECLAIMED, "stress", "-c", "2")
    rows: list[Row] = []
    with crowded(cluster, [web, batch]), LimitWatch(_with_class(_groups(cluster, BATCH))).running() as watch:
        tenant = min(int(line) for group in _groups(cluster, WEB) for line in _lines(group / "cgroup.procs"))
        wait(SETTLED_S, "the first limits")
        series = Series(watch, tenant, usual=watch.now, spikes=spikes)
        rows += series.rows(f"load spike to changed limit, policy {policy}", "100 / 250 ms")
        with _neighbours():
            rows += series.rows(f"the same while others keep every CPU busy, policy {policy}", "- / 500 ms")
    return rows


@dataclass(frozen=True, slots=True)
class Series:
    """Spikes one after the other, each once the batch pod has what it usually has."""

    watch: LimitWatch
    tenant: int
    usual: Limits
    spikes: int

    def rows(self, what: str, target: str) -> list[Row]:
        """The row of these spikes, again where others disturbed them."""
        tries = Tries[list[float]]()
        while tries.wanted():
            chance, load = random.Random(SEED), Watch()
            found = [
                self._spike(chance, f"{what}: spike {number + 1} of {self.spikes}") for number in range(self.spikes)
            ]
            tries.add([took_s for took_s in found if took_s is not None], load.disturbance())
        best, disturbance = tries.best
        missed = f" ({self.spikes - len(best)} without a change)" if len(best) < self.spikes else ""
        row = Row(f"{what}, p50 / p99{missed}", p50_p99(best), len(best), target)
        return observed([row], disturbance, len(tries.made))

    def _spike(self, chance: random.Random, what: str) -> float | None:
        """Seconds until there was less; None: nothing changed."""
        until(
            lambda: not self.watch.now.less_than(self.usual),
            RETURN_LIMIT_S,
            f"{BATCH} with {self.usual} again, last {self.watch.now}",
        )
        time.sleep(BEFORE_S + chance.random() * BEFORE_S)
        progress(what)
        began_s = time.monotonic()
        os.kill(self.tenant, signal.SIGUSR1)
        time.sleep(BUSY_S + AFTER_S)
        less_s = self.watch.less_after(began_s)
        return None if less_s is None else less_s - began_s


def _groups(cluster: Cluster, name: str) -> list[Path]:
    """Of a pod and of its containers, in all hierarchies."""
    uid = cluster.get("pod", name)["metadata"]["uid"]
    found = cluster.groups(f"kubepods/**/pod{uid}")
    return [*found, *(below for group in found for below in group.iterdir() if below.is_dir())]


def _with_class(groups: Sequence[Path]) -> list[Path]:
    """The groups, and those of the pod's class, which bound it as well."""
    return sorted({*groups, *(group.parent for group in groups)})


def settings(policy: str) -> dict[str, Any]:
    """Values of the chart under which spikes are measured."""
    policies = {"koordinator": {"suppress_policy": "cfsQuota"}} if policy == "koordinator" else {}
    return {"settings": {"advisor": {**QUICK_RETURN, "policy": policy, "policies": policies}}}


def usual_policy() -> str:
    """The policy that is measured where none is named."""
    threads_a_core = 2
    return POOLS if (os.cpu_count() or 1) >= threads_a_core * MIN_DISJOINT_CORES else QUOTA


def _lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


@contextmanager
def _neighbours() -> Iterator[None]:
    words = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", SPIN]
    started = [subprocess.Popen(words) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()
