"""A world: three nodes, two centrals, a bus and an API server, what goes wrong with them, and the story of it."""

import asyncio
import gc
import json
import random as chance
import shutil
import sys
import tempfile
from asyncio import taskgroups
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import structlog
from checks import Checks
from faults import CENTRALS, HORIZON_S, KINDS, NODES, Plan
from seeded_loop import CURRENT, InOrder, Killed, Process, SeededLoop
from simulated_api import SimApi
from simulated_bus import Broker, SimBus
from simulated_central import Site
from simulated_node import GIB, Machine
from simulated_parts import BEGAN, NodeClock

from services.qrm.adapters.lease import file as lease_file
from services.qrm.adapters.lease import watchdog as lease_watchdog
from shared import registry
from shared import wire as shared_wire
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import Layout, OwnLayout
from shared.ports import Received
from shared.wire import Wire

WHEELS = cache(entry_points)
"""Plug-ins of other wheels: the installation is read once."""
LAYOUTS: dict[str, Layout] = {"kubelet": KubeletLayout("cgroupfs"), "own": OwnLayout()}
IN_MEMORY = Path("/dev/shm")
AGENT = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": "node"}
CALM_S = 35.0
"""After the last fault, until everything must be in order again."""
BEAT_S, RENEW_S, KUBELET_S = 3.0, 4.0, 1.0


class World:
    """One run of one plan."""

    def __init__(self, plan: Plan, *, tell: Callable[[str], None] | None = None) -> None:
        self.plan, self.random = plan, Random(f"world {plan.seed}")
        self.loop = SeededLoop(Random(f"order {plan.seed}"))
        self.tell: Callable[[str], None] = _nobody
        if tell is not None:
            self.tell = lambda line: tell(f"{self.now_s:9.3f}  {line.replace(str(self.folder), '')}")
        self.folder = Path(tempfile.mkdtemp(prefix="sublet-simulation-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
        self.checks = Checks(self)
        self.api, self.broker = SimApi(), Broker(plan.shards)
        self.api.done, self.api.ended = self.checks.api_did, self.checks.pod_ended
        self.broker.stored_by = self.checks.stored
        self.machines = {
            name: Machine(self, name, Random(f"{name} {plan.seed}"), plan.cgroup_version, LAYOUTS[plan.layout])
            for name in NODES
        }
        self.sites = {name: Site(self, name, Random(f"{name} {plan.seed}")) for name in CENTRALS}
        self._made = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def now_s(self) -> float:
        """Seconds since the world began."""
        return self.loop.time()

    def run(self) -> list[str]:
        """Let the world live; gives the violations, the first of which ends it."""
        with self._in_this_world():
            try:
                self.loop.run_until_complete(self._live())
            finally:
                self._end()
        return self.checks.violations

    async def _live(self) -> None:
        for machine in self.machines.values():
            self._furnish(machine)
        for site in self.sites.values():
            site.start()
        for machine in self.machines.values():
            if machine.name in self.plan.whole:
                machine.start_keeper()
                machine.start_agent()
            else:
                self._start_light(machine)
            self._spawn(self._kubelet(machine))
        self._spawn(self._watch())
        story = self._spawn(self._story())
        broken = self._spawn(self.checks.broken.wait())
        await asyncio.wait({story, broken}, return_when=asyncio.FIRST_COMPLETED)
        if story.done():
            story.result()

    async def _story(self) -> None:
        """Faults begin and end, then calm, then everything must be in order."""
        undo: list[tuple[float, Callable[[], None]]] = []
        moments = sorted(self.plan.faults, key=lambda fault: fault.at_s)
        while moments or undo:
            at_s = min([fault.at_s for fault in moments[:1]] + [when for when, _ in undo])
            await asyncio.sleep(max(0.0, at_s - self.now_s))
            for entry in [entry for entry in undo if entry[0] <= self.now_s + 1e-9]:
                undo.remove(entry)
                entry[1]()
            while moments and moments[0].at_s <= self.now_s + 1e-9:
                fault = moments.pop(0)
                target: Any = self.machines.get(fault.target) or self.sites.get(fault.target)
                self.tell(f"FAULT {fault.kind} of {fault.target} for {fault.for_s:g} s, {fault.amount:g}")
                undo.append((fault.at_s + fault.for_s, KINDS[fault.kind][1](self, target, fault.amount)))
        await asyncio.sleep(max(0.0, HORIZON_S - self.now_s))
        self.tell("all faults are over")
        await asyncio.sleep(CALM_S)
        self.checks.at_the_end()

    def _spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = self.loop.create_task(work)
        self._tasks.add(task)
        return task

    # Nodes and their pods, as kubelet and the API server have them.

    def _furnish(self, machine: Machine) -> None:
        status = {"conditions": [{"type": "Ready", "status": "True"}],
                  "allocatable": {"cpu": "16"}, "capacity": {"cpu": "16"}}  # fmt: skip
        labels = {"kubernetes.io/hostname": machine.name}
        self.api.put(
            f"/api/v1/nodes/{machine.name}", {"metadata": {"name": machine.name, "labels": labels}, "status": status}
        )
        self.agent_pod(machine, ready=True)
        self.new_pod(machine, "shared_cores")
        for _ in range(2):
            self.new_pod(machine, "reclaimed_cores")
        if machine.random.random() < 0.7:
            self.new_pod(machine, "dedicated_cores")

    def agent_pod(self, machine: Machine, *, ready: bool) -> None:
        """What kubelet says of the agent's pod."""
        path = f"/api/v1/namespaces/sublet-system/pods/agent-{machine.name}"
        meta = {"name": f"agent-{machine.name}", "namespace": "sublet-system", "labels": dict(AGENT),
                "uid": f"00000000-0000-4000-8000-00000000000{machine.name[-1]}"}  # fmt: skip
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
        self.api.put(path, {"metadata": meta, "spec": {"nodeName": machine.name, "containers": []}, "status": status})
        if ready:
            self.checks.agent_ready_s[machine.name].append(self.now_s)

    def new_pod(self, machine: Machine, qos: str, name: str = "") -> None:
        """A pod is placed on a node, and kubelet starts it."""
        self._made += 1
        number, prefix = self._made, "katalyst.kubewharf.io"
        uid = f"{number:08x}-0000-4000-8000-{machine.random.getrandbits(48):012x}"
        name = name or f"{qos.partition('_')[0]}-{number}"
        annotations = {f"{prefix}/qos_level": qos}
        resources: dict[str, Any] = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
        if qos == "dedicated_cores":
            annotations[f"{prefix}/memory_enhancement"] = json.dumps(
                {"numa_binding": "true", "numa_exclusive": "false"}
            )
        if qos == "reclaimed_cores":
            amounts = {RECLAIMED_CPU: "2k", RECLAIMED_MEMORY: str(GIB)}
            resources = {"requests": amounts, "limits": amounts}
        kube_qos = "BestEffort" if qos == "reclaimed_cores" else "Guaranteed"
        document = {
            "metadata": {
                "name": name, "namespace": "default", "uid": uid, "annotations": annotations,
                "labels": {"app": "batch" if qos == "reclaimed_cores" else "web"},
            },
            "spec": {
                "nodeName": machine.name, "containers": [{"name": "main", "resources": resources}],
                "terminationGracePeriodSeconds": 3,
            },
            "status": {
                "phase": "Running", "qosClass": kube_qos,
                "containerStatuses": [{"name": "main", "containerID": f"containerd://{number:064x}"}],
            },
        }  # fmt: skip
        self.api.put(f"/api/v1/namespaces/default/pods/{name}", document)
        machine.usage_cores[uid] = round(machine.random.uniform(0.1, 1.5), 2)
        for pod in machine.pods():
            machine.make_groups(pod)
        self.tell(f"pod {name} ({uid[:8]}) comes to {machine.name}")

    def delete_pod(self, machine: Machine, which: int, *, again: bool) -> None:
        """Its owner deletes a pod; as in a StatefulSet one of the same name may come at once."""
        pods = machine.pods()
        if not pods:
            return
        pod = pods[which % len(pods)]
        self.checks.gone_by_others.add(pod.uid)
        self._gone(machine, pod)
        if again:
            self.new_pod(machine, pod.qos, pod.name)

    def pods_of(self, node: str) -> list[Mapping[str, Any]]:
        """Documents of the pods on a node, but for the agent's."""
        return [
            one
            for path, one in sorted(self.api.objects.items())
            if path.startswith("/api/v1/namespaces/default/pods/") and one["spec"].get("nodeName") == node
        ]

    def _gone(self, machine: Machine, pod: Any) -> None:
        path = f"/api/v1/namespaces/default/pods/{pod.name}"
        standing = self.api.objects.get(path)
        if standing is not None and standing["metadata"]["uid"] == pod.uid:
            self.api.remove(path)
        machine.kernel.drop(machine.layout.pod_group(pod))
        self.tell(f"pod {pod.name} ({pod.uid[:8]}) is gone")

    async def _kubelet(self, machine: Machine) -> None:
        asked: dict[str, float] = {}
        told_ready, up_since_s = True, 0.0
        lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{machine.name}"
        while True:
            await asyncio.sleep(KUBELET_S)
            process = machine.agent
            works = process is not None and process.alive and not process.frozen and not machine.down
            works = works and not machine.unready
            up_since_s = (up_since_s or self.now_s) if works else 0.0
            if machine.kubelet_down:
                continue
            if self.now_s - machine.renewed_s >= RENEW_S:
                machine.renewed_s = self.now_s
                meta = {"name": machine.name, "namespace": "kube-node-lease"}
                written = (BEGAN + timedelta(seconds=self.now_s + machine.skew_s)).isoformat()
                self.api.put(lease, {"metadata": meta, "spec": {"renewTime": written}})
            ready = bool(up_since_s) and self.now_s - up_since_s > 1.0
            if ready:
                self.checks.agent_ready_s[machine.name].append(self.now_s)
            if ready != told_ready:
                told_ready = ready
                self.agent_pod(machine, ready=ready)
            for pod in machine.pods():
                if pod.terminating:
                    since_s = asked.setdefault(pod.uid, self.now_s)
                    if self.now_s - since_s >= machine.random.uniform(0.5, 3.0):
                        self._gone(machine, pod)

    # Lives of processes.

    def agent_ended(self, machine: Machine, process: Process, task: "asyncio.Task[Any]") -> None:
        """An agent's process has ended by itself."""
        if process.alive:
            process.kill()
        self.tell(f"{process.name} ended: {_outcome(task)}")

    def central_ended(self, site: Site, process: Process, task: "asyncio.Task[Any]") -> None:
        """A central's process has ended by itself."""
        if process.alive:
            process.kill()
        self.tell(f"{process.name} ended: {_outcome(task)}")

    async def _watch(self) -> None:
        """What starts dead processes anew, as kubelet does, and looks at everything once a second."""
        dead_since: dict[str, float] = {}
        while True:
            await asyncio.sleep(1.0)
            everyone: list[Machine | Site] = [*self.machines.values(), *self.sites.values()]
            for one in everyone:
                if one.down or (one.agent is not None and one.agent.alive):
                    dead_since.pop(one.name, None)
                    continue
                since_s = dead_since.setdefault(one.name, self.now_s)
                if self.now_s - since_s >= one.random.uniform(0.0, 4.0):
                    dead_since.pop(one.name, None)
                    self.tell(f"{one.name} starts again")
                    if isinstance(one, Site):
                        one.start()
                    elif one.name in self.plan.whole:
                        one.start_agent()
                    else:
                        self._start_light(one)
            self.checks.every_second()

    def _start_light(self, machine: Machine) -> None:
        """An agent that sends heartbeats and nothing else."""
        process = machine.agent = Process(f"{machine.name}/agent", node=machine.name, skew_s=machine.skew_s)
        bus = SimBus(self.broker, process, machine.link, Random(machine.random.random()), echo=False)
        machine.bus = bus
        wire = Wire(bus, NodeClock(process, machine.booted_at_s), node=machine.name, service="reporter")

        async def beat() -> None:
            health = ServiceHealth(service="evictor", ok=True)
            while True:
                await wire.publish(wire.stamp(Readiness, ready=True, mode="enforce", services=(health,)))
                await asyncio.sleep(BEAT_S)

        task = process.start(beat(), process.name)
        machine.stop = None
        task.add_done_callback(lambda done: self.agent_ended(machine, process, done))

    # What others send over the bus.

    def replay(self, count: int) -> None:
        """Somebody sends old heartbeats again."""
        recorded = self.broker.recorded
        for message in [recorded[self.random.randrange(len(recorded))] for _ in range(count if recorded else 0)]:
            self.broker.route(message)

    def forge(self, node: str) -> None:
        """A node that is another one's, and nonsense, on a node's subject."""
        recorded = self.broker.recorded
        if recorded:
            other = recorded[self.random.randrange(len(recorded))]
            subject = other.subject.rpartition(".")[0]
            for data in (other.data, b"{", b"\xff" * 9000, other.data[:-20]):
                self.broker.route(Received(f"{subject}.{node}", data, {}))
                self.broker.route(Received(f"{subject}.nobody", data, {}))

    @contextmanager
    def _in_this_world(self) -> Any:
        """Chance, identities and the kernel's clock are this world's."""
        numbers = Random(f"ids {self.plan.seed}")
        ids = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{numbers.getrandbits(128):032x}"))
        tokens = SimpleNamespace(token_hex=lambda count: f"{numbers.getrandbits(8 * count):0{2 * count}x}")
        chance.seed(self.plan.seed)
        kernels = {machine.root: machine for machine in self.machines.values()}

        def boottime_s() -> float:
            process = CURRENT.get()
            return self.machines[process.node].boottime_s if process is not None and process.node else self.now_s

        with ExitStack() as stack:
            stack.enter_context(patch.object(shared_wire, "uuid", ids))
            stack.enter_context(patch.object(shared_wire, "secrets", tokens))
            stack.enter_context(patch.object(lease_file, "boottime_s", boottime_s))
            stack.enter_context(patch.object(taskgroups, "set", InOrder, create=True))
            stack.enter_context(patch.object(registry, "entry_points", WHEELS))
            stack.enter_context(patch.object(lease_watchdog, "Cgroups", lambda root: kernels[root].kernel))
            structlog.configure(processors=[self._log])
            try:
                yield
            finally:
                structlog.reset_defaults()

    def _log(self, _logger: Any, method: str, entry: Any) -> Any:
        """The services' own log lines are part of the story."""
        if self.tell is _nobody:
            raise structlog.DropEvent
        process = CURRENT.get()
        said = {key: value for key, value in entry.items() if key not in ("event", "service", "exc_info")}
        self.tell(f"{process.name if process else '-'} {method} {entry.get('event')} {said or ''}")
        raise structlog.DropEvent

    def _end(self) -> None:
        """Everybody is dead; nothing of them runs while they are cleared away."""
        self.tell = _nobody
        for process in (*(m.agent for m in self.machines.values()), *(m.keeper for m in self.machines.values()),
                        *(site.agent for site in self.sites.values())):  # fmt: skip
            if process is not None:
                process.kill()
        hook, sys.unraisablehook = sys.unraisablehook, lambda _what: None
        try:
            for task in asyncio.all_tasks(self.loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with suppress(RuntimeError, Killed, Exception):
                    task.get_coro().close()
            self.loop.set_exception_handler(lambda _loop, _context: None)
            self.loop.close()
            gc.collect(0)
        finally:
            sys.unraisablehook = hook
            shutil.rmtree(self.folder, ignore_errors=True)


def _nobody(_line: str) -> None:
    """Nobody listens to the story."""


def _outcome(task: "asyncio.Task[Any]") -> str:
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    return f"code {task.result()}" if error is None else f"{type(error).__name__}: {error}"
