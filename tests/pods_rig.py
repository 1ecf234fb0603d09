"""What the tests of the local runtime share: pods of one command, and a top cgroup of their own on the real kernel."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from slow_machines import patience_s

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.cgroup_kill import kill_group
from shared.adapters.local import shim
from shared.adapters.local.runtime import Runtime, new_uid
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.layout import QOS_CLASSES, class_group
from shared.core.pods.manifest import ContainerRun, PodRecord
from shared.settings import CommonSettings

HOST = Path("/")
PATIENCE_S = 20.0


def _fit() -> bool:
    folder = Path("/sys/fs/cgroup/cpuset")
    unified = Path("/sys/fs/cgroup/cgroup.subtree_control")
    return os.geteuid() == 0 and (os.access(folder, os.W_OK) or os.access(unified, os.W_OK)) and folder.is_dir()


ROOT_ONLY = [pytest.mark.root, pytest.mark.skipif(not _fit(), reason="needs root and writable cgroups")]


def record(name: str, *command: str, qos: str = "reclaimed_cores", **amounts: int) -> PodRecord:
    """A pod of one container named main."""
    container = Container(name="main", **({"cpu_request_millis": 100} | amounts))
    pod = Pod(uid=new_uid(), name=name, qos=qos, containers=(container,), phase="Pending")
    return PodRecord(pod=pod, runs=(ContainerRun(name="main", command=command or ("sleep", "300")),))


def wait_for(condition: Callable[[], object]) -> None:
    """Wait for a condition, never for a time."""
    end = time.monotonic() + patience_s(PATIENCE_S)
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


@contextlib.contextmanager
def own_top() -> Iterator[str]:
    """A top cgroup with the classes that `sublet up` would make; what is left in it at the end is killed."""
    cgroups, top = Cgroups(HOST), f"sublet-test-{uuid.uuid4().hex[:8]}"
    try:
        for qos in QOS_CLASSES:
            cgroups.make(class_group(qos, top))
        yield top
    finally:
        wait_for(lambda: not kill_group(cgroups, top))
        wait_for(lambda: cgroups.remove(top))


def runtime(state_dir: Path, top: str) -> Runtime:
    """The pods of a state directory, in that top cgroup."""
    return Runtime(CommonSettings(state_dir=state_dir), top=top)


def start_foreground(state_dir: Path, top: str, pod: PodRecord, **options: Any) -> "subprocess.Popen[str]":
    """`sublet run` in a process of its own: from the record to the watcher that it becomes."""
    program = (
        "import signal, sys; from pods_rig import *;"
        # A test run in the background of a shell ignores the one, one that outlives its terminal the other.
        "[signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGHUP)];"
        "runtime(Path(sys.argv[1]), sys.argv[2]).become(PodRecord.model_validate_json(sys.argv[3]))"
    )
    process: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, "-c", program, str(state_dir), top, pod.model_dump_json()],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
    return process


def watcher_pid(folder: Path) -> int:
    """The process that watches a detached pod, found by its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                if shim.__name__.encode() in arguments and str(folder).encode() in arguments:
                    return int(entry.name)
    raise AssertionError(f"nobody watches {folder}")


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie that nobody reaps has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"
