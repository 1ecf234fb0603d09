"""The process that watches one pod: `python -m …local.shim FOLDER ALIVE_FD [READY_FD]`.

It starts the pod's containers inside their cgroups, passes signals on, collects exit codes and, at the end, removes the
cgroups and writes the last status. The process belongs to the pod, not to Sublet: it outlives a restart of Sublet, and
the pod outlives the death of this process. Standard library only, because there is one for each pod.

ALIVE_FD holds the pod's `alive.lock`. With READY_FD it is detached: output goes to the pod's logs, and one line on that
descriptor says whether the pod started. Without, it stands in the foreground: standard streams are the container's, its
exit code is the container's, and the pod's record vanishes at the end.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.cgroup_kill import kill_group
from shared.adapters.local.log_times import note_length
from shared.adapters.local.pod_folder import EVICTED, LAUNCH, PodFolder, read_json, timestamp
from shared.adapters.local.spawn import NotStarted, set_oom_score, spawn
from shared.core.pods.exit_codes import SIGNALLED

READY = "started"
OOM_KILLED = "OOMKilled"
_NO_LIMIT_BYTES = 1 << 60  # cgroup v1 says the largest number of pages where there is no limit
FORWARDED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
_PR_SET_CHILD_SUBREAPER = 36
_OWN_OOM_SCORE = -998  # as little a victim as a kubelet: who watches a pod must not die for it
_POLL_S = 0.005
_LOOK_S = 0.5
"""How often the logs are looked at: so exact are the times of their lines."""
_REMOVE_PATIENCE_S = 2.0


class Shim:
    """The containers of one pod, from start to end."""

    def __init__(self, folder: PodFolder, launch: Mapping[str, Any], *, foreground: bool) -> None:
        self.folder, self.launch, self.foreground = folder, launch, foreground
        self.cgroups = Cgroups(Path(launch["host_root"]))
        self._running: dict[int, str] = {}
        self._codes: dict[str, int] = {}
        self._closed: set[str] = set()
        self.out_of_memory = ""
        """Why the kernel killed the pod for memory; "" where it did not."""

    def start(self) -> None:
        """Run every container, all or none. A pod that is being ended already starts nothing.

        Raises:
            NotStarted: one of them cannot be run.
        """
        # Marking the pod as terminating needs this lock: afterwards everything to kill is in the cgroups.
        with self.folder.locked():
            if self.folder.status().get("terminating"):
                return
            try:
                for container in self.launch["containers"]:
                    log = None if self.foreground else self.folder.log(container["name"])
                    self._running[spawn(self.cgroups, container, log)] = container["name"]
            except NotStarted as problem:
                self._empty(self.launch["group"])
                self.folder.merge_status(reason="NotStarted", message=str(problem))
                raise
            now = timestamp()
            # The numbers are for people: pods are ended by cgroup, never by these.
            started = {name: {"pid": pid, "started_at": now} for pid, name in self._running.items()}
            self.folder.merge_status(phase="Running", started_at=now, containers=started)

    def watch(self) -> None:
        """Pass signals on and collect exit codes until every container has ended."""
        while self._running:
            # Taken one by one while they are blocked: no handler runs in the middle of a status that is being written.
            info = self._next_signal()
            if info is None:
                self._note_logs()
            elif info.si_signo == signal.SIGCHLD:
                self._reap()
            elif info.si_code <= 0:  # by a process; what the terminal sends, it sends to the whole foreground job
                for pid in self._running:
                    os.kill(pid, info.si_signo)

    def close(self) -> dict[str, Any]:
        """Remove the cgroups and write the last status, which is returned; empty if the pod's folder is gone."""
        self._note_logs()
        end = time.monotonic() + _REMOVE_PATIENCE_S
        while not self.cgroups.remove(self.launch["group"]) and time.monotonic() < end:
            self._empty(self.launch["group"])
            time.sleep(_POLL_S)
        try:
            return self.folder.finish()
        except FileNotFoundError:  # Sublet was taken down meanwhile, with its state
            return {}

    @property
    def code(self) -> int:
        """Exit code of the first container; that of a TERM where the pod was ended before it started."""
        return self._codes.get(self.launch["containers"][0]["name"], SIGNALLED + signal.SIGTERM)

    def _next_signal(self) -> signal.struct_siginfo | None:
        """The next signal; None where the logs are to be looked at first."""
        wanted = {*FORWARDED, signal.SIGCHLD}
        return signal.sigwaitinfo(wanted) if self.foreground else signal.sigtimedwait(wanted, _LOOK_S)

    def _note_logs(self) -> None:
        """Keep when the logs have grown; in the foreground there are none."""
        for container in self.launch["containers"] if not self.foreground else ():
            note_length(self.folder.log(container["name"]), time.time_ns() // 1_000_000)

    def _reap(self) -> None:
        self._collect()
        # Again until none is new: while one container is emptied, another may end.
        while ended := sorted(self._codes.keys() - self._closed):
            for name in ended:
                self._end_container(name)

    def _collect(self) -> None:
        """Take the exit codes of all children that have ended, adopted ones too."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if name := self._running.pop(pid, None):
                    code = os.waitstatus_to_exitcode(status)
                    self._codes[name] = code if code >= 0 else SIGNALLED - code

    def _end_container(self, name: str) -> None:
        """End what the main process left behind, as every container runtime does."""
        self._closed.add(name)
        group = next(c["group"] for c in self.launch["containers"] if c["name"] == name)
        self._empty(group)
        facts = {"exit_code": self._codes[name], "ended_at": timestamp()}
        if self._oom_kills(group):
            facts["reason"] = OOM_KILLED
            self.out_of_memory = self._memory_words(group)
        with contextlib.suppress(FileNotFoundError):
            self.folder.update_status(containers={name: facts})
            if self.out_of_memory:
                self.folder.update_status(message=self.out_of_memory)

    def _empty(self, group: str) -> None:
        while kill_group(self.cgroups, group):
            self._collect()
            time.sleep(_POLL_S)

    def _oom_kills(self, group: str) -> int:
        return self._count(group, "memory.oom_control" if self.cgroups.version == 1 else "memory.events", "oom_kill")

    def _memory_words(self, group: str) -> str:
        """Describe whose memory ran out: the pod's own, if a limit of its own was met, otherwise that of a group
        with others."""
        for own in (group, self.launch["group"]):
            if limit := self._met_limit(own):
                return f"the pod used more than its memory limit {limit}"
        return "memory ran out outside of the pod, at a limit of its class or of the node"

    def _met_limit(self, group: str) -> str:
        """Return the memory limit of a cgroup if it was met; "" if it was not, or if there is none."""
        first = self.cgroups.version == 1
        if first:
            met = (self.cgroups.text(group, "memory.failcnt", "memory") or "0").strip() != "0"
        else:
            met = self._count(group, "memory.events", "oom") > 0
        limit = (self.cgroups.text(group, "memory.limit_in_bytes" if first else "memory.max", "memory") or "").strip()
        return _size(int(limit)) if met and limit.isdigit() and int(limit) < _NO_LIMIT_BYTES else ""

    def _count(self, group: str, name: str, key: str) -> int:
        lines = (line.split() for line in (self.cgroups.text(group, name, "memory") or "").splitlines())
        return sum(int(fields[1]) for fields in lines if fields[0] == key)


def _size(amount: int) -> str:
    """Bytes as a manifest would say them."""
    return f"{amount >> 20}Mi" if amount % (1 << 20) == 0 else f"{amount >> 10}Ki"


@contextlib.contextmanager
def _saying_ready(handle: int | None) -> Iterator[None]:
    message = "its watcher failed; see shim.log in the pod's folder"
    try:
        yield
        message = READY
    except NotStarted as problem:
        message = str(problem)
        raise
    finally:
        if handle is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(handle, message.encode())
            os.close(handle)


def _farewell(pod: str, status: Mapping[str, Any]) -> None:
    """Tell the user in the foreground that the pod did not end by itself."""
    why = f" ({status['message']})" if status.get("message") else ""
    more = f"; see: sublet explain pod/{pod.removeprefix('default/')}" if status["reason"] == EVICTED else ""
    print(f"sublet: pod {pod} was {status['reason'].lower()}{why}{more}", file=sys.stderr)


def run(folder: PodFolder, ready: int | None) -> int:
    """Start, watch and close one pod; returns the exit code."""
    foreground = ready is None
    shim = Shim(folder, read_json(folder.path / LAUNCH), foreground=foreground)
    pod = shim.launch["pod"]
    try:
        with _saying_ready(ready):
            shim.start()
    except NotStarted as problem:
        shim.close()
        if foreground:
            print(f"sublet: pod {pod}: {problem}", file=sys.stderr)
            folder.remove()
        return problem.code
    shim.watch()
    status = shim.close()
    if foreground:
        if status.get("terminating"):
            _farewell(pod, status)
        elif shim.out_of_memory:
            more = f"see: sublet explain pod/{pod.removeprefix('default/')}"
            print(f"sublet: pod {pod} was killed: {shim.out_of_memory} ({shim.code}); {more}", file=sys.stderr)
            return shim.code  # its record stays, or nothing would be left to be explained
        folder.remove()
    return shim.code


def main(arguments: list[str]) -> int:
    """The command line, as in the module's first line."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    # Ignored, as a caller may have left it, it would have the kernel reap children itself, and the exit codes with
    # them.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    folder = PodFolder(Path(arguments[0]))
    descriptors = [int(argument) for argument in arguments[1:]]
    for descriptor in descriptors:
        # The containers must not inherit them: one with the lock would keep its pod "watched" for as long as it runs.
        os.set_inheritable(descriptor, False)
    ready = descriptors[1] if len(descriptors) > 1 else None
    if ready is not None and os.fork():
        os._exit(0)  # the starter waits for this process only
    # Processes that a container leaves behind become children of this process, which can then reap them.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # After the fork, and set back in each container: children inherit it.
    set_oom_score(_OWN_OOM_SCORE)
    return run(folder, ready)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
