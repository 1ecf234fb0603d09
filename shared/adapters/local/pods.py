"""The pod store keeps a folder for each pod of the local runtime and the simulator below `<state_dir>/pods`.

Files and locks are described in `shared.adapters.local.pod_folder`.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shared.adapters.files.boot import of_earlier_boot
from shared.adapters.local.pod_folder import (
    GENERATION,
    NAMES,
    POD,
    STATUS,
    PodFolder,
    read_json,
    timestamp,
    touch_generation,
    write_json,
)
from shared.adapters.local.stored_pod import PodStatus, StoredPod
from shared.contracts.ids import UID_PATTERN
from shared.contracts.pod import Pod
from shared.core.pods.manifest import PodRecord
from shared.core.pydantic_words import first_fault
from shared.errors import Conflict, Refused, Unavailable

KEEP_FINISHED = 200
"""How many pods that have ended keep their record and their logs, the newest of them."""
_EVER = datetime.min.replace(tzinfo=UTC)
_READ_AGAIN = 3  # a pod may be removed or replaced between two of its files


class LocalPods:
    """A PodSource over the store, and the store's only way to be changed."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / "pods"
        self._generation = str(self.path / GENERATION)

    def pods(self) -> Sequence[Pod]:
        """Pods that hold resources or are about to, ascending by namespace/name; none before first use.

        A record that cannot be read fails the whole list: leaving the pod out would take its share from it.

        Raises:
            Unavailable: the folder or a pod in it cannot be read; names the pod and how to get rid of it.
        """
        return [stored.pod for stored in self.stored() if not stored.status.finished]

    def generation(self) -> int:
        """Changes with every change of any pod; 0 before first use.

        Raises:
            Unavailable: the folder cannot be read.
        """
        try:
            return os.stat(self._generation).st_mtime_ns  # noqa: PTH116 - asked many times a second
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise Unavailable(f"{self.path}: {error.strerror}", reason="unreadable") from error

    def stored(self) -> list[StoredPod]:
        """Return all pods, including finished ones, ascending by namespace/name; none from before a reboot, which
        ended them all.

        Raises:
            Unavailable: as `pods`.
        """
        if of_earlier_boot(self.path.parent):  # until the next start removes them
            return []
        try:
            # Names that are no UID are this store's own: pods that are being added or removed, and locks.
            names = [entry.name for entry in os.scandir(self.path) if re.fullmatch(UID_PATTERN, entry.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(f"{self.path}: {error.strerror}; try it as root", reason="unreadable") from error
        found = [stored for name in names if (stored := self.get(name)) is not None]
        return sorted(found, key=lambda stored: (stored.record.pod.key, stored.record.pod.uid))

    def get(self, uid: str) -> StoredPod | None:
        """Return one pod by UID; None if there is none.

        Raises:
            Unavailable: its record cannot be read.
        """
        folder = self.folder(uid)
        error: Exception | None = None
        for _ in range(_READ_AGAIN):
            if not folder.path.is_dir():
                return None
            try:
                record = PodRecord.model_validate(read_json(folder.path / POD))
                if record.pod.uid != uid:
                    raise ValueError(f"its UID is {record.pod.uid!r}")
                return StoredPod(folder, record, PodStatus.model_validate(folder.status()))
            except PermissionError as problem:
                raise Unavailable(f"pod {uid}: {problem.strerror}; try it as root", reason="unreadable") from problem
            except (OSError, ValueError) as problem:
                error = problem
        raise Unavailable(
            f"pod {uid}: its record in {folder.path} cannot be used ({_brief(error)}); "
            "end its processes, then remove that folder",
            reason="corrupt",
        ) from error

    def find(self, name: str, namespace: str = "default") -> StoredPod:
        """Return a pod by "name", "namespace/name" or either after "pod/"; a running one takes precedence over a
        finished one.

        Raises:
            Refused: no such pod; lists the existing ones.
            Unavailable: as `pods`.
        """
        plain = re.sub(r"^pods?/", "", name)
        key = plain if "/" in plain else f"{namespace}/{plain}"
        everything = self.stored()
        matching = [stored for stored in everything if stored.record.pod.key == key]
        if not matching:
            known = ", ".join(sorted({stored.record.pod.key for stored in everything})) or "none"
            raise Refused(f"pod {key} not found; there is: {known}", reason="not_found")
        return min(matching, key=lambda stored: stored.status.finished)

    def folder(self, uid: str) -> PodFolder:
        """The folder of a UID, whether it exists or not.

        Raises:
            Refused: not a UID; it would leave the store.
        """
        if not re.fullmatch(UID_PATTERN, uid):
            raise Refused(f"pod UID {uid!r}: want hexadecimal digits and dashes", reason="bad_path")
        return PodFolder(self.path / uid)

    @contextlib.contextmanager
    def adding(self, record: PodRecord) -> Iterator[PodFolder]:
        """Prepare a pod aside; it appears, whole, when the block ends well. A finished pod of its name makes room.

        Raises:
            Conflict: an unfinished pod has that name.
            Unavailable: the store cannot be written.
        """
        pod = record.pod
        final = self.folder(pod.uid).path
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with self._names():
                old = self._make_room(pod)
                aside = PodFolder(self.path / f".new-{pod.uid}")
                # Left by a process that was killed while it added this pod.
                shutil.rmtree(aside.path, ignore_errors=True)
                aside.path.mkdir(mode=0o700)
                try:
                    write_json(aside.path / POD, record.model_dump(mode="json"))
                    write_json(aside.path / STATUS, {"phase": "Pending", "created_at": timestamp()})
                    yield aside
                    aside.path.rename(final)
                except BaseException:
                    shutil.rmtree(aside.path, ignore_errors=True)
                    raise
                # Only now: where adding fails, the finished pod of that name and its logs are still there.
                for uid in old:
                    self.folder(pod.uid).inherit_logs(self.folder(uid))
                    self.remove(uid)
                for uid in self._long_finished():
                    self.remove(uid)
        except PermissionError as error:
            raise Unavailable(f"{self.path}: {error.strerror}; try it as root", reason="unwritable") from error
        touch_generation(self.path)

    def add(self, record: PodRecord) -> PodFolder:
        """Add a complete pod.

        Raises:
            Conflict, Unavailable: as `adding`.
        """
        with self.adding(record):
            pass
        return self.folder(record.pod.uid)

    def update_status(self, uid: str, **changes: Any) -> None:
        """Change keys of a pod's status, as in `PodStatus`; containers are merged by name. One that is gone stays gone.

        Raises:
            ValueError: a value that `PodStatus` does not admit.
        """
        checked = PodStatus.model_validate(changes).model_dump(mode="json", exclude_unset=True)
        with contextlib.suppress(FileNotFoundError):
            self.folder(uid).update_status(**checked)

    def mark_terminating(self, uid: str, grace_s: float, reason: str, message: str = "") -> bool:
        """Mark a pod as terminating, with the reason; return False if it has finished or is gone. The first reason
        stays.

        After this returns, no container of the pod starts any more.

        Raises:
            Unavailable: its record cannot be read.
        """
        folder = self.folder(uid)
        try:
            with folder.locked():
                stored = self.get(uid)
                if stored is None or stored.status.finished:
                    return False
                if not stored.status.terminating:
                    folder.merge_status(
                        terminating=True, grace_s=grace_s, reason=reason, message=message, terminating_at=timestamp()
                    )
                return True
        except FileNotFoundError:
            return False

    def remove(self, uid: str) -> bool:
        """Remove a pod from the store completely; return False if there was none. Its processes are left alone."""
        return self.folder(uid).remove()

    @contextlib.contextmanager
    def _names(self) -> Iterator[None]:
        handle = os.open(self.path / NAMES, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _long_finished(self) -> list[str]:
        """Return the oldest finished pods beyond the number that is kept, so that users need not delete them."""
        ended = [(stored.status.ended_at or _EVER, stored.record.pod.uid) for stored in self.stored() if
                 stored.status.finished]  # fmt: skip
        return [uid for _, uid in sorted(ended)[:-KEEP_FINISHED]]

    def _make_room(self, pod: Pod) -> list[str]:
        same = [stored for stored in self.stored() if stored.record.pod.key == pod.key]
        for stored in same:
            if not stored.status.finished:
                state = "Terminating" if stored.status.terminating else stored.status.phase
                raise Conflict(
                    f"pod {pod.key} exists ({state}); end it first: sublet delete pod/{pod.name}", reason="exists"
                )
        if self.folder(pod.uid).path.exists():
            raise Conflict(f"pod UID {pod.uid} exists; a UID is used once", reason="exists")
        return [stored.record.pod.uid for stored in same]


def _brief(error: Exception | None) -> str:
    if isinstance(error, ValidationError):
        return first_fault(error)
    return str(error)
