"""A node of 48 CPUs with a machine of the simulator, for an API server that is real."""

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from fast_time import SPEED, NodeClock
from paper_node import AT_ONCE, PaperNode

from services.metrics.main import PLAN as METRICS
from shared.adapters.kube.client import Document, Kube, KubeError
from shared.adapters.kube.watch import Mirror, listed
from shared.app import App, Context, Plan
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.pods.kube_pod import pod_of
from sublet.load.demand import demand_of
from sublet.node import PLANS
from sublet.sim.kernel import Kernel
from sublet.sim.machine import SimMachine

AMOUNTS = {"cpu": "48", "memory": "195924424Ki", "pods": "110"}
LAYOUT = KubeletLayout("systemd")
TICK_S, STEP_S, LIST_LIMIT_S = 1.0, 0.05, 30.0 * SPEED


class MeteredClock(NodeClock):
    """The time of who measures a machine. It passes on the machine when he looks at it, so that what is counted is up
    to date however long the last look took: a rate over late counters would be no load but a jolt.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self._kernel, self._stepped_s = kernel, -STEP_S

    def monotonic(self) -> float:
        now_s = super().monotonic()
        if now_s - self._stepped_s >= STEP_S:
            self._stepped_s = now_s
            assert self._kernel.step(now_s) == [], "a container was killed for memory"
        return now_s


class SimNode(PaperNode):
    """A machine of the simulator, and its kubelet: what a pod asks `stress` for becomes threads in kubelet's groups."""

    def __init__(self, name: str, label: str, kube: Kube, pods: Mirror[Document], root: Path) -> None:
        super().__init__(kube, name, label, AMOUNTS)
        self._pods = pods
        self.kernel, self._started = Kernel(root, SimMachine()), dict[str, Pod]()
        for home in LAYOUT.homes:
            self.kernel.groups.make(home)

    async def live(self) -> None:
        """Start and end the machine's pods."""
        await listed(self._pods, NodeClock(), timeout_s=LIST_LIMIT_S)
        while True:
            for document in list(self._pods.objects.values()):
                if document["spec"].get("nodeName") == self.name:
                    await self._tend(document)
            await asyncio.sleep(TICK_S)

    async def _tend(self, document: Document) -> None:
        meta = document["metadata"]
        if not meta.get("deletionTimestamp"):
            if meta["uid"] not in self._started:
                await self._start(document)
        elif (pod := self._started.get(meta["uid"])) is not None and pod.phase == "Running":
            self._started[pod.uid] = pod.model_copy(update={"phase": "Failed"})
            self.kernel.stop(LAYOUT.pod_group(pod))
            with contextlib.suppress(KubeError):
                await self._kube.delete(_path(pod), AT_ONCE | {"preconditions": {"uid": pod.uid}})

    async def _start(self, document: Document) -> None:
        meta, (container,) = document["metadata"], document["spec"]["containers"]
        own = {"name": container["name"], "containerID": f"containerd://{UUID(meta['uid']).hex * 2}", "ready": True}
        running = {**own, "image": container["image"], "imageID": "", "restartCount": 0, "state": {"running": {}}}
        conditions = [*document["status"].get("conditions", ()), {"type": "Ready", "status": "True"}]
        status = {"phase": "Running", "conditions": conditions, "containerStatuses": [running]}
        pod = pod_of(document | {"status": document["status"] | status})
        assert pod is not None
        self._started[pod.uid] = pod
        self.kernel.start(self._group(pod), demand_of(container["command"]))
        for knob, limit in (
            (Knob.CPU_QUOTA, pod.containers[0].cpu_limit_millis),
            (Knob.MEMORY_MAX, pod.containers[0].memory_limit_bytes),
        ):
            if limit and pod.qos != "reclaimed_cores":  # reclaimed amounts are extended resources: kubelet limits none
                self.kernel.groups.cgroups.write(self._group(pod), knob, limit)
        await self._kube.merge(f"{_path(pod)}/status", {"status": status}, manager="kubelet")

    def _group(self, pod: Pod) -> str:
        group = LAYOUT.container_group(pod, pod.containers[0])
        assert group is not None
        return group

    @property
    def plans(self) -> list[Plan]:
        """The services of the node; metrics with the machine's clock."""

        def measure(context: Context) -> App:
            return METRICS.build(replace(context, clock=MeteredClock(self.kernel)))

        return [Plan(plan.name, measure) if plan is METRICS else plan for plan in PLANS]

    def exec(self, name: str, *command: str) -> None:
        """As `kubectl exec`."""
        (pod,) = (pod for pod in self._started.values() if pod.name == name)
        self.kernel.add(self._group(pod), demand_of(command))


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
