"""The story on a simulated 48-CPU machine, where the real cgroups cannot be written: same services, real NATS.

The first two cases need no Sublet: they are the machine's model alone, in simulated time. The third runs the embedded
NATS server and the six services as processes, in real time, over a generated host tree.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from shared.contracts.pod import QosClass
from shared.core.cgroups.layout import class_group, container_group
from shared.settings import CommonSettings
from sublet.demo.chain import Chain
from sublet.demo.svg import Axes, Band, PlotSeries, plot
from sublet.demo.watch import TimelineRecorder, TimelineRow, busy_seconds
from sublet.host.session import READY_TIMEOUT_S, Session
from sublet.sim.host import SimHost
from sublet.sim.machine import SimMachine
from sublet.sim.scenario import Exec, read_scenario

CPUS = 48
STEADY_THREADS, SPIKE_THREADS, BATCH_THREADS = 8, 34, 48
STEADY_S, SPIKE_S = 8.0, 10.0
TICK_S = 0.25
EVICTION_TIMEOUT_S = 40.0
STOP_AFTER_S = 2
GIB = 1 << 30


def manifest(name: str, qos: QosClass, *command: str, millis: int = 2000) -> dict[str, Any]:
    """A pod of one container that asks for nothing it is not given by its class."""
    resources: dict[str, Any] = {"requests": {"cpu": f"{millis}m"}}
    if qos == "reclaimed_cores":
        prefix = "resource.katalyst.kubewharf.io/reclaimed_"
        resources = {"requests": {f"{prefix}millicpu": str(millis), f"{prefix}memory": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": {"katalyst.kubewharf.io/qos_level": qos, "sim.sublet/stop-after-s": str(STOP_AFTER_S)},
        },
        "spec": {"containers": [{"name": "main", "command": list(command), "resources": resources}]},
    }


@dataclass
class SimCase:
    """One case: what the machine was used for, and how much of what it asked for the service got."""

    name: str
    title: str
    utilization: float = 0.0
    satisfied: float = 0.0
    moments: list[TimelineRow] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """The figures of this case for the report."""
        return {
            "title": self.title,
            "cpu_utilization_percent": round(self.utilization * 100, 1),
            "tenant_satisfied_percent": round(self.satisfied * 100, 1),
        }


def model_case(case: SimCase, batch: int) -> SimCase:
    """Steady, then spiking load, with so many unmanaged batch pods of the same class beside it."""
    with tempfile.TemporaryDirectory(prefix="sublet-demo-") as folder:
        host = SimHost.create(Path(folder) / "host", SimMachine(cgroup_version=1), Path(folder) / "state")
        web = host.apply_pod(manifest("web", "shared_cores", "stress", "-c", str(STEADY_THREADS)))
        for number in range(batch):
            host.apply_pod(manifest(f"batch-{number}", "shared_cores", "stress", "-c", str(BATCH_THREADS)))
        usage = host.kernel.root / f"sys/fs/cgroup/cpuacct/{container_group(web, 'main')}/cpuacct.usage"
        now = 0.0
        host.step(now)
        while now < STEADY_S + SPIKE_S:
            if now == STEADY_S:
                extra = str(SPIKE_THREADS - STEADY_THREADS)
                host.exec(Exec(pod="default/web", command=("stress", "-c", extra)))
            now += TICK_S
            host.step(now)
        wanted = STEADY_THREADS * STEADY_S + SPIKE_THREADS * SPIKE_S
        case.satisfied = int(usage.read_text()) / 1e9 / wanted
        case.utilization = busy_seconds(host.kernel.root) / (now * CPUS)
    return case


def play_simulated(state_dir: Path, facts: dict[str, Any], say: Callable[[str], None]) -> tuple[dict[str, Any], str]:
    """Run all three cases and the eviction; about 60 s. Returns the report's figures and plots."""
    cases = [
        model_case(SimCase("alone", "1/3  the service alone"), 0),
        model_case(SimCase("unmanaged", "2/3  with unmanaged batch work"), 2),
    ]
    for case in cases:
        say(case.title)
    third = SimCase("sublet", "3/3  with batch work under Sublet")
    say(third.title)
    live = asyncio.run(_live(state_dir, third, say))
    cases.append(third)
    document = facts | live | {"cases": {case.name: case.summary() for case in cases}}
    return document, _plots(third, live["spike_at_s"])


def _steps() -> list[dict[str, Any]]:
    spike_at = STEADY_S + STOP_AFTER_S
    batch = [manifest(f"batch-{n}", "reclaimed_cores", "stress", "-c", str(BATCH_THREADS)) for n in range(2)]
    extra = str(SPIKE_THREADS - STEADY_THREADS)
    return [
        {"at_s": 0, "apply": [manifest("web", "shared_cores", "stress", "-c", str(STEADY_THREADS)), *batch]},
        {"at_s": spike_at, "exec": {"pod": "web", "command": ["stress", "-c", extra]}},
        {"at_s": spike_at + SPIKE_S, "apply": [
            manifest("hog", "reclaimed_cores", "stress", "--vm", "1", "--vm-bytes", "168G", "--vm-hang", "1000")]},
        # The reclaimed class's limit alone keeps memory free; what the service takes then is more than there is.
        {"at_s": spike_at + SPIKE_S + 4, "exec": {
            "pod": "web", "command": ["stress", "--vm", "1", "--vm-bytes", "16G", "--vm-hang", "1000"]}},
    ]  # fmt: skip


async def _live(state_dir: Path, case: SimCase, say: Callable[[str], None]) -> dict[str, Any]:
    document: Mapping[str, Any] = {
        "name": "demo",
        "machine": {"watermark_scale_factor": 200, "cgroup_version": 1},
        "steps": _steps(),
    }
    read_scenario(document, source="demo")
    state_dir.mkdir(parents=True)
    scenario = state_dir.parent / "scenario.yaml"
    scenario.write_text(yaml.safe_dump(dict(document)))
    root = state_dir.parent / "host"
    common = CommonSettings(node="demo", substrate="sim", host_root=root, state_dir=state_dir)
    session = Session(common, nats_port=0, scenario=scenario, forget=True, say=lambda line: say(f"     {line}"))
    faults: list[str] = []
    await session.start()
    pids = [child.pid for child in session.children.values() if child.pid]
    try:
        async with Chain.recording(session.nats_url or "", node="demo") as chain:
            watch = TimelineRecorder([], host_root=root)
            watch.start()
            spike = await _spike(root, faults)
            if not await chain.succeeded("hog", EVICTION_TIMEOUT_S):
                faults.append(f"the batch pod was not evicted within {EVICTION_TIMEOUT_S:.0f} s")
            watch.stop()
            faults += await chain.lost()
            rows = chain.rows("hog")
    finally:
        await session.stop()
    faults += [f"process {pid} was left behind" for pid in pids if Path(f"/proc/{pid}").exists()]
    shrunk = next((c.at_s - spike.at_s for c in watch.changes if c.smaller and c.at_s >= spike.at_s), None)
    if shrunk is None:
        faults.append("the reclaimed pool did not shrink while the load spiked")
    case.moments, case.satisfied = watch.moments, spike.satisfied
    case.utilization = _mean([m.busy_cores for m in watch.moments if m.at_s <= spike.at_s + SPIKE_S]) / CPUS
    spike_at_s = spike.at_s - watch.started_s
    return {"chain": rows, "faults": faults, "spike_at_s": spike_at_s, "spike_to_cpuset_s": shrunk}


@dataclass(frozen=True, slots=True)
class Spike:
    """When the simulated service's threads multiplied, and which share of the CPU it then asked for it got."""

    at_s: float
    satisfied: float


async def _spike(root: Path, faults: list[str]) -> Spike:
    """Wait for the spike, then compare what the service used with what its threads would use."""
    look_s = SPIKE_S - 2.0
    try:
        async with asyncio.timeout(STEADY_S + STOP_AFTER_S + READY_TIMEOUT_S):
            while _of_web(root, "cgroup.procs").count("\n") < SPIKE_THREADS:
                await asyncio.sleep(0.01)
    except TimeoutError:
        faults.append("the simulated service's load did not spike")
        return Spike(time.monotonic(), 0.0)
    at_s, before = time.monotonic(), int(_of_web(root, "cpuacct.usage"))
    await asyncio.sleep(look_s)
    used_s = (int(_of_web(root, "cpuacct.usage")) - before) / 1e9
    return Spike(at_s, used_s / (SPIKE_THREADS * (time.monotonic() - at_s)))


def _of_web(root: Path, name: str) -> str:
    """A file of the service's container: the only pod of the tenants' class."""
    found = root.glob(f"sys/fs/cgroup/cpuacct/{class_group('shared_cores')}/pod*/main/{name}")
    return next((path.read_text() for path in found), "")


def _mean(values: list[float]) -> float:
    return sum(values) / max(len(values), 1)


def _plots(case: SimCase, spike_at_s: float) -> str:
    zero = case.moments[0].at_s if case.moments else 0.0
    span = (case.moments[-1].at_s - zero) if case.moments else 1.0
    bands = [Band(max(0.0, spike_at_s), min(span, spike_at_s + SPIKE_S), "spike")]
    use = PlotSeries("busy CPUs", "#6b7280", [(m.at_s - zero, m.busy_cores) for m in case.moments])
    reclaim_cpus = [(m.at_s - zero, m.reclaim_cpus) for m in case.moments]
    reclaimed = PlotSeries("reclaimed", "#ea580c", reclaim_cpus, step=True, filled=True)
    shared = PlotSeries("shared", "#2563eb", [(m.at_s - zero, m.share_cpus) for m in case.moments], step=True)
    lines = (
        ("Pools, as the tree has them", [reclaimed, shared]),
        ("CPU use of the machine", [use]),
    )  # fmt: skip
    drawn = (plot(title, Axes("CPUs", span, float(CPUS)), series, bands=bands) for title, series in lines)
    return f"<div class=row>{''.join(drawn)}</div>"
