"""One pod of the local runtime on disk. Standard library only: the small process that watches a pod imports this.

    pods/.generation            its modification time changes with every change of any pod
    pods/.names                 lock: held while a pod is added, so that two cannot take one name
    pods/<uid>/pod.json         what was asked for; never changes
    pods/<uid>/launch.json      how this host runs it; only where real processes are started
    pods/<uid>/status.json      what became of it
    pods/<uid>/status.lock      lock: held while the status is read and replaced
    pods/<uid>/alive.lock       lock: held for life by the process that watches the pod, free when that one is dead
    pods/<uid>/logs/<container>.log, .times     its output, and when that was written
    pods/<uid>/previous/        the logs of the pod that had this one's name before it, their last 8 MiB each

Files are replaced as a whole (written aside, renamed), so that a reader sees the old or the new one.
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from shared.adapters.files.replaced import write_whole
from shared.adapters.local.log_times import keep_end

POD, LAUNCH, STATUS = "pod.json", "launch.json", "status.json"
GENERATION, NAMES = ".generation", ".names"
FINISHED = ("Succeeded", "Failed")
EVICTED = "Evicted"
_PRIVATE = 0o600  # environments hold secrets
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
_LARGEST_BYTES = 8 << 20  # a command line and its environment are 2 MiB at most


def timestamp() -> str:
    """Now, UTC, as in Kubernetes objects."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def touch_generation(pods_dir: Path) -> None:
    """Say that something about the pods has changed."""
    with contextlib.suppress(FileNotFoundError):
        marker = os.open(pods_dir / GENERATION, os.O_WRONLY | os.O_CREAT | _NO_LINK, 0o640)
        try:
            # Set by hand: the kernel's own stamp moves with its tick, and two changes within one would look like none.
            os.utime(marker, ns=(now := time.time_ns(), now))
        finally:
            os.close(marker)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Replace a file as a whole; only the owner may read it."""
    write_whole(path, json.dumps(document).encode(), mode=_PRIVATE)


def read_json(path: Path) -> dict[str, Any]:
    """A file's mapping.

    Raises:
        OSError: it cannot be read, or is a link.
        ValueError: it is not a JSON mapping, or larger than any that is written here.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as file:
        text = file.read(_LARGEST_BYTES + 1)
    if len(text) > _LARGEST_BYTES:
        raise ValueError(f"{path}: larger than {_LARGEST_BYTES} bytes")
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError(f"{path}: want a JSON mapping, got {type(document).__name__}")
    return document


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        here = result.get(key)
        result[key] = _merged(here, value) if isinstance(here, dict) and isinstance(value, Mapping) else value
    return result


class PodFolder:
    """The files of one pod."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def uid(self) -> str:
        """The pod's UID is the folder's name."""
        return self.path.name

    def log(self, container: str) -> Path:
        """Return where a container's output goes in the background."""
        return self.path / "logs" / f"{container}.log"

    @property
    def previous(self) -> Path:
        """Where the logs of the last pod of this one's name are."""
        return self.path / "previous"

    def inherit_logs(self, old: "PodFolder") -> None:
        """Take over the logs of a finished pod of the same name, if there are any."""
        # They are a courtesy: where they cannot be kept, a pod starts all the same.
        with contextlib.suppress(OSError):
            (old.path / "logs").rename(self.previous)
            for log in self.previous.glob("*.log"):
                keep_end(log)

    def status(self) -> dict[str, Any]:
        """Return the pod's status, as written last."""
        return read_json(self.path / STATUS)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the status against other writers; a process that dies releases the lock."""
        handle = os.open(self.path / "status.lock", os.O_RDWR | os.O_CREAT | _NO_LINK, _PRIVATE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def merge_status(self, **changes: Any) -> dict[str, Any]:
        """Change keys of the status, mapping by mapping; the caller holds `locked`."""
        status = _merged(self.status(), changes)
        write_json(self.path / STATUS, status)
        touch_generation(self.path.parent)
        return status

    def update_status(self, **changes: Any) -> dict[str, Any]:
        """Lock, then change keys of the status."""
        with self.locked():
            return self.merge_status(**changes)

    def finish(self, **changes: Any) -> dict[str, Any]:
        """Write the last status: Succeeded if every container ended with 0 and the pod was not ended from outside,
        otherwise Failed."""
        with self.locked():
            status = _merged(self.status(), changes)
            if status.get("phase") in FINISHED:
                return status
            containers = status.get("containers", {}).values()
            well = containers and all(c.get("exit_code") == 0 for c in containers) and not status.get("terminating")
            return self.merge_status(**changes, phase="Succeeded" if well else "Failed", ended_at=timestamp())

    def remove(self) -> bool:
        """Take the pod out of the store in one step; False where it was not there."""
        # Renamed first: a reader sees the whole pod or none, never a folder that is being emptied.
        gone = self.path.with_name(f".gone-{self.uid}")
        try:
            self.path.rename(gone)
        except FileNotFoundError:
            return False
        shutil.rmtree(gone, ignore_errors=True)
        touch_generation(self.path.parent)
        return True

    def lock_alive(self) -> IO[bytes]:
        """Take the watcher's lock; it is held until the file is closed, also by processes that inherit it.

        Raises:
            BlockingIOError: another process watches this pod.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK
        file = os.fdopen(os.open(self.path / "alive.lock", flags, _PRIVATE), "ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise
        return file

    def watched(self) -> bool:
        """Whether the process that watches this pod lives."""
        try:
            with (self.path / "alive.lock").open("rb") as file:
                # Shared, so that two concurrent checks do not take each other for the watcher.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False
