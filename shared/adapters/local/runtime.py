"""`Runtime` starts, ends and tidies up pods on this host; every command about pods uses it."""

import asyncio
import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import IO, NoReturn

import structlog

from shared.adapters.clock import SystemClock
from shared.adapters.files.own_folder import require_own
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import read_text
from shared.adapters.local import shim
from shared.adapters.local.evictor import LocalEvictor, finish_if_over
from shared.adapters.local.launch import launch_document, require_room, start_writes
from shared.adapters.local.pod_folder import LAUNCH, PodFolder, write_json
from shared.adapters.local.pod_user import PodUser, this_user
from shared.adapters.local.pods import LocalPods
from shared.adapters.local.stored_pod import StoredPod
from shared.core.cgroups.knobs import Write
from shared.core.cgroups.layout import ROOT, class_group, container_group, pod_group
from shared.core.pods.manifest import PodRecord
from shared.core.text.kernel_text import meminfo_bytes
from shared.errors import Refused, SubletError, Unavailable, Unfit
from shared.settings import CommonSettings

DELETED = "Deleted"
START_IT = "start it with: sudo sublet up"
_SIM_PATIENCE_S, _SIM_POLL_S = 10.0, 0.05
_SHIM = (sys.executable, "-P", "-m", shim.__name__)  # -P: the current folder may belong to anybody


def new_uid() -> str:
    """A UID that no pod had before."""
    return str(uuid.uuid4())


def open_runtime(common: CommonSettings) -> "Runtime":
    """The runtime of a command, with these settings."""
    # A command prints its own messages: of the adapters' logs only problems are of interest, never on stdout.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    return Runtime(common)


class Runtime:
    """The pods of this host. `top` is the cgroup that holds the QoS classes."""

    def __init__(self, common: CommonSettings, *, top: str = ROOT) -> None:
        self.common, self.top = common, top
        self.pods = LocalPods(common.state_dir)

    @property
    def simulated(self) -> bool:
        """Whether the pods in the store are the simulator's."""
        try:
            facts = json.loads((self.common.state_dir / "up.json").read_text())
        except (OSError, ValueError):
            facts = {}
        return bool(facts.get("substrate", self.common.substrate) == "sim")

    @property
    def cgroups(self) -> Cgroups:
        """This host's cgroups.

        Raises:
            Unavailable: there are none.
        """
        return Cgroups(self.common.host_root)

    def start(self, record: PodRecord, *, env: Mapping[str, str], user: PodUser | None = None) -> None:
        """Run a pod detached; returns once every container runs. `user` is by default the caller, who inherits `env`.

        On the simulator it is put into the store, from which its machine starts it within a moment.

        Raises:
            Refused, Conflict, Unfit, Unavailable: nothing runs and nothing is left.
        """
        if self.simulated:
            self._require_up(record)
            self.pods.add(record)
            return
        folder, alive = self._prepare(record, user)
        ours, theirs = os.pipe()
        try:
            with alive, (folder.path / "shim.log").open("ab") as log:
                subprocess.run(
                    [*_SHIM, str(folder.path), str(alive.fileno()), str(theirs)],
                    pass_fds=(alive.fileno(), theirs), start_new_session=True, env=dict(env), cwd="/",
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False,
                )  # fmt: skip
        finally:
            # This end too, or the read below would wait for a writer that is this process.
            os.close(theirs)
        with os.fdopen(ours) as pipe:
            # To its end: the watcher closes it after one line, and a watcher that dies closes it without any.
            said = pipe.read()
        if said != shim.READY:
            # First the watcher, then the pod's folder: it writes its last status there.
            self._await_watcher(folder)
            self._clear(record)
            raise Refused(f"pod {record.pod.key}: {said or 'its watcher could not be started'}", reason="not_started")

    def become(self, record: PodRecord, *, user: PodUser | None = None) -> NoReturn:
        """Run a pod in the foreground: this process becomes its watcher and ends with its exit code.

        Raises:
            Refused, Conflict, Unfit, Unavailable: nothing runs and nothing is left.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, shim.FORWARDED)  # the watcher takes over what comes meanwhile
        try:
            folder, alive = self._prepare(record, user)
        except BaseException:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, shim.FORWARDED)
            raise
        # The lock passes to the watcher with the descriptor, so it is held at every moment.
        os.set_inheritable(alive.fileno(), True)
        os.execv(_SHIM[0], [*_SHIM, str(folder.path), str(alive.fileno())])  # noqa: S606

    async def end(self, stored: StoredPod, grace_s: float, *, reason: str = DELETED, why: str = "") -> None:
        """TERM, grace, KILL, then take the pod out of the store.

        Raises:
            Unavailable: its cgroups cannot be read; nothing is removed.
        """
        pod = stored.record.pod
        if self.simulated:
            await self._end_simulated(stored, grace_s, reason, why)
            return
        evictor = LocalEvictor(self.common.state_dir, self.cgroups, SystemClock(), top=self.top, reason=reason)
        result = await evictor.evict(pod, grace_s=grace_s, why=why)
        if result.outcome == "failed":
            raise Unavailable(result.detail)
        # Both: the evictor ends processes, and the watcher, which is their parent, then writes down exit codes.
        await evictor.ended(pod.uid)
        await asyncio.to_thread(self._await_watcher, stored.folder)
        self._clear(stored.record)

    async def _end_simulated(self, stored: StoredPod, grace_s: float, reason: str, why: str) -> None:
        """Ask the simulator to end a pod, and wait until it has."""
        uid, deadline_s = stored.folder.uid, grace_s + _SIM_PATIENCE_S
        if not self.pods.mark_terminating(uid, grace_s, reason, why):
            self.pods.remove(uid)
            return
        try:
            async with asyncio.timeout(deadline_s):
                while (left := self.pods.get(uid)) is not None and not left.status.finished:
                    await asyncio.sleep(_SIM_POLL_S)
        except TimeoutError:
            raise Unavailable(
                f"pod {stored.record.pod.key}: asked to end, and the simulator has not done so in {deadline_s:g} s; "
                f"see {self.common.state_dir / 'logs/sim.log'}"
            ) from None
        if reason == DELETED:
            self.pods.remove(uid)

    def reconcile(self) -> None:
        """Close pods whose watcher was killed and whose processes have ended since.

        Raises:
            Unavailable: the store cannot be read.
        """
        if self.simulated:
            return
        for stored in self.pods.stored():
            # Without a launch it is none of ours: the simulator's pods lie in the same store.
            if not stored.status.finished and (stored.folder.path / LAUNCH).exists():
                finish_if_over(self.pods, self.cgroups, stored.record.pod.uid, top=self.top)

    def _prepare(self, record: PodRecord, user: PodUser | None = None) -> tuple[PodFolder, IO[bytes]]:
        """Make the pod's cgroups and its folder, with the watcher's lock taken before anybody can see it."""
        pod = record.pod
        self._require_up(record)
        writes = start_writes(pod, top=self.top, machine_bytes=self._machine_bytes())
        require_room(pod, writes)
        user = user or this_user()
        self.reconcile()  # a name is not held by what has died
        with self.pods.adding(record) as folder:
            env = user.environment(os.environ)
            document = launch_document(record, user, env, host_root=str(self.common.host_root), top=self.top)
            write_json(folder.path / LAUNCH, document)
            # Inside the block, while the pod is still aside: from its first moment in the store it counts as watched.
            alive = folder.lock_alive()
        try:
            self._make_groups(record, writes)
        except (OSError, SubletError) as error:
            alive.close()
            self._clear(record)
            if isinstance(error, SubletError):
                raise
            raise Unfit(f"pod {pod.key}: its cgroup cannot be set up ({error.strerror}: {error.filename})") from error
        return self.pods.folder(pod.uid), alive

    def _require_up(self, record: PodRecord) -> None:
        pod = record.pod
        if self.simulated:
            if not (self.common.state_dir / "up.json").exists():
                raise Unfit(f"pod {pod.key}: no simulated machine is up here; start one: sublet up --substrate sim")
            return
        group = class_group(pod.qos, self.top)
        if not self.cgroups.exists(group):
            raise Unfit(f"pod {pod.key}: Sublet is not up on this host (no cgroup {group}); {START_IT}")
        if os.geteuid() != 0:
            raise Unfit(f"pod {pod.key}: only root can put processes into cgroups; run it with sudo")
        require_own(self.common.state_dir)  # what lies there is run as root

    def _make_groups(self, record: PodRecord, writes: Sequence[Write]) -> None:
        cgroups = self.cgroups
        for run in record.runs:
            cgroups.make(container_group(record.pod, run.name, self.top))
        for write in writes:
            cgroups.write(write.group, write.knob, write.value)

    def _machine_bytes(self) -> int:
        """Memory of this host; 0 where the kernel does not say."""
        text = read_text(f"{self.common.host_root}/proc/meminfo") or ""
        return meminfo_bytes(text, ("MemTotal",)).get("MemTotal", 0)

    def _await_watcher(self, folder: PodFolder) -> None:
        """Wait until the watching process has released the pod; it always does, right after the last status."""
        try:
            with (folder.path / "alive.lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
        except FileNotFoundError:
            return

    def _clear(self, record: PodRecord) -> None:
        self.cgroups.remove(pod_group(record.pod, self.top))
        self.pods.remove(record.pod.uid)
