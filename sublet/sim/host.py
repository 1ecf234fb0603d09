"""The simulated host: the runtime that starts and ends pods of the store, over the simulated kernel."""

import contextlib
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import structlog
import yaml

from shared.adapters.local.launch import start_writes
from shared.adapters.local.log_times import note_length
from shared.adapters.local.pods import LocalPods
from shared.adapters.local.runtime import DELETED
from shared.adapters.local.stored_pod import StoredPod
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import ROOT, container_group, pod_group
from shared.core.pods.manifest import read_pod
from shared.errors import Refused
from sublet.load.demand import STOP_AFTER, SimDemand, SimLoad, loads_of, stop_after_s
from sublet.sim.kernel import Kernel
from sublet.sim.machine import SimMachine
from sublet.sim.progress import AddedCommand, PodProgress, SimProgress
from sublet.sim.scenario import Exec, Step

KILLED, TERMINATED = 137, 143  # 128 + SIGKILL, 128 + SIGTERM
_UID_SPACE = uuid.UUID("5d0b7a52-3f0e-5f0c-8a35-3c1f6f2c9b10")

log = structlog.get_logger()


class SimHost:
    """Runs the pods of a store on a generated host. Nothing of the real machine is touched.

    `speed` is how many seconds of a scenario, and of the curves of loads, pass in a second; CPU time, memory and the
    grace of pods keep to the real one, by which the services measure.
    """

    def __init__(self, kernel: Kernel, state_dir: Path, uid_space: uuid.UUID = _UID_SPACE) -> None:
        self.kernel, self.pods = kernel, LocalPods(state_dir)
        self.speed, self.progress = 1.0, SimProgress()
        self._uid_space = uid_space
        self._config_file = state_dir / "config.yaml"
        self._started: dict[str, Pod] = {}
        self._loads: dict[str, list[tuple[SimLoad, float]]] = {}
        self._asked_to_end: dict[str, float] = {}
        self._last_s: float | None = None
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
        loads_of(record)
        self.pods.add(record)
        self.progress = self.progress.with_pod(uid, PodProgress(since_s=self.progress.time_s, of_scenario=True))
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
        added = AddedCommand(container=container, command=request.command, since_s=self.progress.time_s)
        before = self.progress.pods[pod.uid]
        after = before.model_copy(update={"added": (*before.added, added)})
        self.progress = self.progress.with_pod(pod.uid, after)
        group = container_group(pod, container)
        self._loads[group].append((SimLoad.of_command(added.command), added.since_s))
        self.kernel.ask(group, self._demand(group))
        self._say(pod, container, f"one more command: {' '.join(added.command)}")

    def delete_pod(self, key: str) -> None:
        """Ask a pod to end; it leaves the store once it has.

        Raises:
            Refused: there is no such pod.
        """
        pod = self.pods.find(key).record.pod
        if not self.pods.mark_terminating(pod.uid, pod.grace_s, DELETED):
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
        self._pass_time(now_s)
        stored = {item.record.pod.uid: item for item in self.pods.stored()}
        for uid in [uid for uid in self._started if uid not in stored or stored[uid].status.finished]:
            self._stop(uid)
        for uid, item in stored.items():
            if item.status.finished:
                continue
            if uid not in self._started:
                self._start(item)
            code = self._end_code(item, now_s) if item.status.terminating else None
            if code is not None:
                names = (container.name for container in item.record.pod.containers)
                self._finish(item.record.pod, containers={name: {"exit_code": code} for name in names})
        for group in self._loads:
            self.kernel.ask(group, self._demand(group))
        for container in self.kernel.step(now_s):
            self._ended_by_kernel(container)

    def _pass_time(self, now_s: float) -> None:
        passed_s = 0.0 if self._last_s is None else max(0.0, now_s - self._last_s)
        self._last_s = now_s
        time_s = self.progress.time_s + passed_s * self.speed
        self.progress = self.progress.model_copy(update={"time_s": time_s})

    def _demand(self, group: str) -> SimDemand:
        """What a container asks for now: its own load and that of every command that was added to it."""
        now_s = self.progress.time_s
        return sum((load.at(now_s - since_s) for load, since_s in self._loads[group]), SimDemand())

    def _running(self, key: str) -> Pod:
        pod = next((pod for pod in self._started.values() if pod.key == key), None)
        if pod is None:
            raise Refused(f"pod {key} does not run; running: {', '.join(self.running()) or 'none'}", reason="missing")
        return pod

    def _start(self, item: StoredPod) -> None:
        pod = item.record.pod
        try:
            loads = loads_of(item.record)
        except Refused as refusal:  # a pod that another process put into the store
            self._finish(pod, reason="StartError", message=str(refusal))
            return
        # Known already: it ran in an earlier life of this process, and goes on where it was.
        known = self.progress.pods.get(pod.uid)
        own = known or PodProgress(since_s=self.progress.time_s)
        self.progress = self.progress.with_pod(pod.uid, own)
        for name, load in loads.items():
            group = container_group(pod, name)
            added = [(SimLoad.of_command(one.command), one.since_s) for one in own.added if one.container == name]
            self._loads[group] = [(load, own.since_s), *added]
            self.kernel.start(group, self._demand(group))
            self._say(pod, name, f"runs on the simulated machine: {load.words}")
        self._limit(pod, of_scenario=own.of_scenario)
        self._started[pod.uid] = pod
        self.pods.update_status(pod.uid, phase="Running")
        log.info("pod.started", pod=pod.key, pod_uid=pod.uid)

    def _limit(self, pod: Pod, *, of_scenario: bool) -> None:
        """Limits as whoever starts such a pod sets them."""
        cgroups = self.kernel.groups.cgroups
        if not of_scenario:
            for write in start_writes(pod, top=ROOT, machine_bytes=self.kernel.machine.memory_bytes):
                cgroups.write(write.group, write.knob, write.value)
            return
        # A scenario's pods are a kubelet's: to it, amounts of reclaimed resources are extended resources, not limits.
        for container in pod.containers if pod.qos != "reclaimed_cores" else ():
            group = container_group(pod, container.name)
            if container.cpu_limit_millis:
                cgroups.write(group, Knob.CPU_QUOTA, container.cpu_limit_millis)
            if container.memory_limit_bytes:
                cgroups.write(group, Knob.MEMORY_MAX, container.memory_limit_bytes)

    def _say(self, pod: Pod, container: str, line: str) -> None:
        """Write a line into a container's log, as its command would; without it the pod runs all the same."""
        log_file = self.pods.folder(pod.uid).log(container)
        with contextlib.suppress(OSError):
            log_file.parent.mkdir(exist_ok=True)
            with log_file.open("a") as file:
                file.write(f"{line}\n")
            note_length(log_file, time.time_ns() // 1_000_000)

    def _end_code(self, item: StoredPod, now_s: float) -> int | None:
        """With what a pod that was asked to end has ended by itself, or was killed after its grace; None: not yet."""
        pod = item.record.pod
        asked_s = self._asked_to_end.setdefault(pod.uid, now_s)
        grace_s = pod.grace_s if item.status.grace_s is None else item.status.grace_s
        own = self.progress.pods.get(pod.uid, PodProgress())
        # A scenario's pod may have its reasons to wait for the kill; any other ends as most programs do at TERM.
        stop_s = stop_after_s(pod) if own.of_scenario or STOP_AFTER in pod.annotations else 0.0
        if now_s - asked_s < min(grace_s, stop_s):
            return None
        return TERMINATED if stop_s <= grace_s else KILLED

    def _finish(self, pod: Pod, **status: Any) -> None:
        """A pod has ended: nothing of it runs, its status says so; one that was deleted leaves the store."""
        self._stop(pod.uid)
        last = self.pods.folder(pod.uid).finish(**status)
        for container in pod.containers:
            self._say(pod, container.name, f"ended: {last.get('reason') or last.get('phase')}")
        if last.get("reason") == DELETED:
            self.pods.remove(pod.uid)
        log.info("pod.ended", pod=pod.key, pod_uid=pod.uid)

    def _stop(self, uid: str) -> None:
        self._asked_to_end.pop(uid, None)
        self.progress = self.progress.without_pod(uid)
        if (pod := self._started.pop(uid, None)) is not None:
            for container in pod.containers:
                self._loads.pop(container_group(pod, container.name), None)
            self.kernel.stop(pod_group(pod))

    def _ended_by_kernel(self, group: str) -> None:
        """The kernel killed a container for memory: a pod whose containers have all ended has failed."""
        for uid, pod in list(self._started.items()):
            ended = next((c.name for c in pod.containers if container_group(pod, c.name) == group), None)
            if ended is None:
                continue
            log.warning("container.oom_killed", pod=pod.key, container=ended)
            self._loads.pop(group, None)
            self._say(pod, ended, "killed: out of memory")
            self.pods.update_status(uid, containers={ended: {"exit_code": KILLED, "reason": "OOMKilled"}})
            if not any(self.kernel.runs(container_group(pod, c.name)) for c in pod.containers):
                self._finish(pod, reason="OOMKilled")
