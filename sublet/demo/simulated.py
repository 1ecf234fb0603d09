"""The demo on a simulated 48-CPU machine, if real cgroups cannot be written: same services, real NATS.

The first two cases need no Sublet: they use only the machine's model, in simulated time. The third runs the embedded
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
from shared.errors import SubletError
from shared.settings import CommonSettings
from sublet.demo.chain import Chain
from sublet.demo.machine.fit import disturbances, words
from sublet.demo.machine.reading import read_machine
from sublet.demo.report import DemoRun, RunCurves
from sublet.demo.story import TITLES, DemoEviction
from sublet.demo.verdict import DemoClaim, Outcome, always
from sublet.demo.watch import CpuRates, TimelineRecorder, TimelineRow, busy_seconds, cpu_seconds
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
    spike_s: float = STEADY_S
    """On the clock of its moments."""
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
        now, rates = 0.0, CpuRates(CPUS)
        host.step(now)
        while now < STEADY_S + SPIKE_S:
            if now == STEADY_S:
                extra = str(SPIKE_THREADS - STEADY_THREADS)
                host.exec(Exec(pod="default/web", command=("stress", "-c", extra)))
            now += TICK_S
            host.step(now)
            rates.add(*cpu_seconds(host.kernel.root), int(usage.read_text()) / 1e9)
            if rates.busy_cores is not None:
                case.moments.append(TimelineRow(now, rates.busy_cores, 0.0, None, None, 0, rates.service_cores))
        wanted = STEADY_THREADS * STEADY_S + SPIKE_THREADS * SPIKE_S
        case.satisfied = int(usage.read_text()) / 1e9 / wanted
        case.utilization = busy_seconds(host.kernel.root) / (now * CPUS)
    return case


def play_simulated(state_dir: Path, say: Callable[[str], None]) -> DemoRun:
    """Run all three cases and the eviction; about 60 s."""
    readings = {"before": read_machine()}
    say(f"     before: {words(readings['before'])}")
    cases = []
    for number, (name, batch) in enumerate((("alone", 0), ("unmanaged", 2)), start=1):
        say(f"{number}/3  {TITLES[name]}")
        cases.append(model_case(SimCase(name, TITLES[name]), batch))
    third = SimCase("sublet", TITLES["sublet"])
    say(f"3/3  {third.title}")
    live = _Live()
    asyncio.run(_play_live(state_dir, third, live, say))
    cases.append(third)
    readings["afterwards"] = read_machine()
    say(f"     afterwards: {words(readings['afterwards'])}")
    disturbed = [line for when, reading in readings.items() for line in disturbances(when, reading)]
    return DemoRun(
        claims=_claims(cases, live, bool(disturbed)),
        disturbed=disturbed,
        readings=readings,
        figures={case.name: case.summary() for case in cases},
        curves=[RunCurves(case.title, case.moments, case.spike_s, case.spike_s + SPIKE_S) for case in cases],
        cpus=CPUS,
        before_s=STEADY_S,
        after_s=SPIKE_S,
        spike_to_cpuset_s=live.shrunk_s,
        breach_to_call_s=None,
        chain=live.eviction.chain,
    )


@dataclass
class _Live:
    """What was seen of the third case beside its timeline."""

    shrunk_s: float | None = None
    eviction: DemoEviction = field(default_factory=DemoEviction)
    left: list[str] = field(default_factory=list)
    broken: str = ""


def _claims(cases: list[SimCase], live: _Live, disturbed: bool) -> list[DemoClaim]:
    late: Outcome = "not shown" if disturbed else "failed"
    why = live.broken or ("the machine was disturbed" if disturbed else "it did not happen in time")
    without, ours = (100 * case.satisfied for case in cases[1:])
    parts = f"{without:.0f} % without Sublet, {ours:.0f} % with it"
    found: list[tuple[str, bool, str]] = [
        ("The service gets more of the CPU it asks for than beside unmanaged batch work", ours > without, parts),
        (
            "The reclaimed pool gives CPUs back while the load spikes",
            live.shrunk_s is not None,
            f"{(live.shrunk_s or 0.0) * 1000:.0f} ms from the spike to the smaller CPU list",
        ),
        ("A batch pod is evicted when the service takes the last memory", live.eviction.succeeded, ""),
    ]
    return [
        *(DemoClaim(text, "shown" if shown else late, words if shown else why) for text, shown, words in found),
        *always(live.eviction.lost if live.eviction.succeeded else None, live.left),
    ]


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


async def _play_live(state_dir: Path, case: SimCase, live: _Live, say: Callable[[str], None]) -> None:
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
    watch = TimelineRecorder([], host_root=root, cpus=CPUS, service_usage_s=lambda: _service_usage_s(root))
    recording = asyncio.create_task(_record(watch, root))
    try:
        await session.start()
    except (SubletError, TimeoutError) as error:
        recording.cancel()
        watch.stop()
        live.broken = f"Sublet did not start: {error}"
        return
    pids = [child.pid for child in session.children.values() if child.pid]
    try:
        async with Chain.recording(session.nats_url or "", node="demo") as chain:
            spike = await _spike(root, live)
            live.eviction.succeeded = await chain.succeeded("hog", EVICTION_TIMEOUT_S)
            live.eviction.lost, live.eviction.chain = await chain.lost(), chain.rows("hog")
    except (SubletError, TimeoutError) as error:
        live.broken = live.broken or str(error) or "the time was over"
        return
    finally:
        recording.cancel()
        watch.stop()
        await session.stop()
        live.left = [f"process {pid} was left behind" for pid in pids if Path(f"/proc/{pid}").exists()]
    live.shrunk_s = next((c.at_s - spike.at_s for c in watch.changes if c.smaller and c.at_s >= spike.at_s), None)
    case.moments, case.satisfied, case.spike_s = watch.moments, spike.satisfied, spike.at_s
    case.utilization = _mean([m.busy_cores for m in watch.moments if m.at_s <= spike.at_s + SPIKE_S]) / CPUS


async def _record(watch: TimelineRecorder, root: Path) -> None:
    """Begin as soon as the simulated machine runs the service: on a slow one that is long before Sublet is ready."""
    while not _of_web(root, "cgroup.procs"):
        await asyncio.sleep(0.05)
    watch.start()


@dataclass(frozen=True, slots=True)
class Spike:
    """When the simulated service's threads multiplied, and which share of the CPU it then asked for it got."""

    at_s: float
    satisfied: float


async def _spike(root: Path, live: _Live) -> Spike:
    """Wait for the spike, then compare what the service used with what its threads would use."""
    look_s = SPIKE_S - 2.0
    try:
        async with asyncio.timeout(STEADY_S + STOP_AFTER_S + READY_TIMEOUT_S):
            while _of_web(root, "cgroup.procs").count("\n") < SPIKE_THREADS:
                await asyncio.sleep(0.01)
    except TimeoutError:
        live.broken = "the simulated service's load did not spike"
        return Spike(time.monotonic(), 0.0)
    at_s, before = time.monotonic(), int(_of_web(root, "cpuacct.usage"))
    await asyncio.sleep(look_s)
    used_s = (int(_of_web(root, "cpuacct.usage")) - before) / 1e9
    # The simulated counters move once a second: the last of it may be counted twice as well as not at all.
    return Spike(at_s, min(1.0, used_s / (SPIKE_THREADS * (time.monotonic() - at_s))))


def _of_web(root: Path, name: str) -> str:
    """A file of the service's container: the only pod of the tenants' class."""
    found = root.glob(f"sys/fs/cgroup/cpuacct/{class_group('shared_cores')}/pod*/main/{name}")
    return next((path.read_text() for path in found), "")


def _service_usage_s(root: Path) -> float | None:
    text = _of_web(root, "cpuacct.usage")
    return int(text) / 1e9 if text.strip().isdigit() else None


def _mean(values: list[float]) -> float:
    return sum(values) / max(len(values), 1)
