"""The simulated host: the runtime that starts and ends pods of the store, over the simulated kernel.

As a process of its own: `python -m sublet.sim.host FOLDER STATE_DIR [SCENARIO]` keeps a tree alive in real time.
"""

import asyncio
import signal
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import structlog
import yaml

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.local.pods import LocalPods
from shared.adapters.local.stored_pod import StoredPod
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import container_group, pod_group
from shared.core.pods.manifest import read_pod
from shared.errors import Refused, SubletError
from shared.ports import Clock
from shared.settings import common_settings, raw_settings
from sublet.sim.demand import demand_of, demands_of, stop_after_s
from sublet.sim.kernel import Kernel
from sublet.sim.machine import SimMachine
from sublet.sim.scenario import DEFAULT, Exec, Scenario, Step, load_scenario

KILLED = 137  # 128 + SIGKILL, what a container ends with that was killed
LIVE_PERIOD_S = 0.1
_UID_SPACE = uuid.UUID("5d0b7a52-3f0e-5f0c-8a35-3c1f6f2c9b10")

log = structlog.get_logger()


class SimHost:
    """Runs the pods of a store on a generated host. Nothing of the real machine is touched."""

    def __init__(self, kernel: Kernel, state_dir: Path, uid_space: uuid.UUID = _UID_SPACE) -> None:
        self.kernel, self.pods = kernel, LocalPods(state_dir)
        self._uid_space = uid_space
        self._config_file = state_dir / "config.yaml"
        self._started: dict[str, Pod] = {}
        self._asked_to_end: dict[str, float] = {}
        self._deleted: set[str] = set()
        self._applied = 0

    @classmethod
    def create(cls, folder: Path, machine: SimMachine, state_dir: Path, uid_space: uuid.UUID = _UID_SPACE) -> Self:
        """Write the machine's tree below `folder`; pods come from the store in `state_dir`.

        Pods get the UIDs of `uid_space` in the order of their coming.
        """
        return cls(Kernel(folder, machine), state_dir, uid_space)

    def apply_pod(self, manifest: Mapping[str, Any]) -> Pod:
        """Add a pod to the store; it starts at the next step. In one UID space the same story gives the same UIDs.

        Raises:
            Refused: the manifest is no pod that can run here, or its command cannot be read.
            Conflict: a pod of that name is there.
        """
        while self.pods.get(uid := str(uuid.uuid5(self._uid_space, str(self._applied)))) is not None:
            self._applied += 1
        self._applied += 1
        record = read_pod(manifest, uid).record
        # Read before the pod is stored: a pod that cannot be played must not be started by the next step.
        demands_of(record)
        self.pods.add(record)
        return record.pod

    def exec(self, request: Exec) -> None:
        """Run one more command in a running pod.

        Raises:
            Refused: there is no such pod or container, or it does not run.
        """
        pod = self._running(request.pod)
        names = [container.name for container in pod.containers]
        container = request.container or names[0]
        if container not in names:
            raise Refused(f"pod {pod.key} has no container {container!r}; it has: {', '.join(names)}", reason="missing")
        self.kernel.add(container_group(pod, container), demand_of(request.command))

    def delete_pod(self, key: str) -> None:
        """Ask a pod to end; it leaves the store once it has.

        Raises:
            Refused: there is no such pod.
        """
        pod = self.pods.find(key).record.pod
        if self.pods.mark_terminating(pod.uid, pod.grace_s, "Deleted"):
            self._deleted.add(pod.uid)
        else:
            self.pods.remove(pod.uid)

    def perform(self, step: Step) -> None:
        """Do what a scenario's step says; expectations are not this host's matter.

        Raises:
            Refused, Conflict: it cannot be done.
        """
        for manifest in step.apply or ():
            self.apply_pod(manifest)
        if step.exec is not None:
            self.exec(step.exec)
        if step.delete is not None:
            self.delete_pod(step.delete)
        if step.configure is not None:
            self._config_file.write_text(yaml.safe_dump(step.configure))

    def running(self) -> list[str]:
        """The pods that run, as namespace/name, ascending."""
        return sorted(pod.key for pod in self._started.values())

    def step(self, now_s: float) -> None:
        """Start and end what the store asks for, then let the time since the last step pass."""
        stored = {item.record.pod.uid: item for item in self.pods.stored()}
        for uid in [uid for uid in self._started if uid not in stored or stored[uid].status.finished]:
            self._stop(uid)
        for uid, item in stored.items():
            if item.status.finished:
                continue
            if uid not in self._started:
                self._start(item)
            if item.status.terminating and self._over(item, now_s):
                names = (container.name for container in item.record.pod.containers)
                self._finish(item.record.pod, containers={name: {"exit_code": KILLED} for name in names})
        for container in self.kernel.step(now_s):
            self._ended_by_kernel(container)

    async def live(self, clock: Clock, period_s: float = LIVE_PERIOD_S) -> None:
        """Step for ever. Rates over less than some ten periods show the steps, not the load."""
        while True:
            self.step(clock.monotonic())
            await clock.sleep(period_s)

    def _running(self, key: str) -> Pod:
        pod = next((pod for pod in self._started.values() if pod.key == key), None)
        if pod is None:
            raise Refused(f"pod {key} does not run; running: {', '.join(self.running()) or 'none'}", reason="missing")
        return pod

    def _start(self, item: StoredPod) -> None:
        pod = item.record.pod
        try:
            demands = demands_of(item.record)
        except Refused as refusal:  # a pod that another process put into the store
            self._finish(pod, reason="StartError", message=str(refusal))
            return
        for name, demand in demands.items():
            self.kernel.start(container_group(pod, name), demand)
        self._limit(pod)
        self._started[pod.uid] = pod
        self.pods.update_status(pod.uid, phase="Running")
        log.info("pod.started", pod=pod.key, uid=pod.uid)

    def _limit(self, pod: Pod) -> None:
        """Limits as a kubelet sets them: amounts of reclaimed resources are extended resources, not limits."""
        if pod.qos == "reclaimed_cores":
            return
        cgroups = self.kernel.groups.cgroups
        for container in pod.containers:
            group = container_group(pod, container.name)
            if container.cpu_limit_millis:
                cgroups.write(group, Knob.CPU_QUOTA, container.cpu_limit_millis)
            if container.memory_limit_bytes:
                cgroups.write(group, Knob.MEMORY_MAX, container.memory_limit_bytes)

    def _over(self, item: StoredPod, now_s: float) -> bool:
        """Whether a pod that was asked to end has done so, or is killed at the end of its grace."""
        pod = item.record.pod
        asked_s = self._asked_to_end.setdefault(pod.uid, now_s)
        grace_s = pod.grace_s if item.status.grace_s is None else item.status.grace_s
        return now_s - asked_s >= min(grace_s, stop_after_s(pod))

    def _finish(self, pod: Pod, **status: Any) -> None:
        """A pod has ended: nothing of it runs, its status says so; one that was deleted leaves the store."""
        self._stop(pod.uid)
        self.pods.folder(pod.uid).finish(**status)
        if pod.uid in self._deleted:
            self._deleted.discard(pod.uid)
            self.pods.remove(pod.uid)
        log.info("pod.ended", pod=pod.key, uid=pod.uid)

    def _stop(self, uid: str) -> None:
        self._asked_to_end.pop(uid, None)
        if (pod := self._started.pop(uid, None)) is not None:
            self.kernel.stop(pod_group(pod))

    def _ended_by_kernel(self, group: str) -> None:
        """The kernel killed a container for memory: a pod whose containers have all ended has failed."""
        for uid, pod in list(self._started.items()):
            ended = next((c.name for c in pod.containers if container_group(pod, c.name) == group), None)
            if ended is None:
                continue
            log.warning("container.oom_killed", pod=pod.key, container=ended)
            self.pods.update_status(uid, containers={ended: {"exit_code": KILLED, "reason": "OOMKilled"}})
            if not any(self.kernel.runs(container_group(pod, c.name)) for c in pod.containers):
                self._finish(pod, reason="OOMKilled")


async def follow(host: SimHost, scenario: Scenario, clock: Clock) -> None:
    """Perform a scenario's steps in real time, anew as often as it says; one that fails is said and left out."""
    start_s = clock.monotonic()
    while True:
        for step in scenario.steps:
            # Towards an absolute time: steps that take long do not push the story back.
            await clock.sleep(max(0.0, start_s + step.at_s - clock.monotonic()))
            try:
                host.perform(step)
            except SubletError as error:
                log.error("step.failed", at_s=step.at_s, why=str(error))
        if scenario.again_at_s is None:
            return
        start_s += scenario.again_at_s


async def _main(folder: Path, state_dir: Path, name: str | None) -> None:
    common = common_settings(raw_settings())
    telemetry.setup_logging("sim", common.node, as_json=common.log_json, level=common.log_level)
    scenario = load_scenario(name or DEFAULT)
    # A UID is used once, also over restarts and among hosts: what was decided on one stands in ledgers and streams.
    host, clock = SimHost.create(folder, scenario.machine, state_dir, uuid.uuid4()), SystemClock()
    tasks = [asyncio.create_task(host.live(clock))]
    if name is not None:
        tasks.append(asyncio.create_task(follow(host, scenario, clock)))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ended = asyncio.ensure_future(stop.wait())
    await asyncio.wait({ended, tasks[0]}, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    if not stop.is_set():
        await tasks[0]


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit("usage: python -m sublet.sim.host FOLDER STATE_DIR [SCENARIO]")
    try:
        asyncio.run(_main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) == 4 else None))
    except SubletError as error:
        sys.exit(f"sublet sim host: {error}")
