"""qrm's side of the lease: renew it, and see to it that a keeper watches it.

On one host qrm starts the keeper, and takes both away on a clean stop. In a pod the keeper is a container of its own,
which is there before the agent and after it, and the lease is left to it.
"""

import asyncio
import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from services.qrm.adapters.state import lease as leases
from services.qrm.core.writes.plan import Want
from services.qrm.keeper import take_lock
from shared.errors import Unavailable

STOP_WAIT_S = 3.0
_POLL_S = 0.05


class LeaseKeeping:
    """The lease file and the keeper process of one state directory."""

    def __init__(self, state_dir: Path, host_root: Path, top: str, *, resident: bool = False) -> None:
        """`resident`: the keeper is there by itself, and stays."""
        self._state_dir, self._host_root, self._top, self._resident = state_dir, host_root, top, resident
        self._boot = leases.boot_name(host_root)
        self._child: subprocess.Popen[bytes] | None = None

    def left_s(self) -> float:
        """Seconds that the lease on disk still runs; 0 where there is none of this boot."""
        try:
            lease = leases.read_lease(self._state_dir / leases.FILE)
        except ValueError:
            return 0.0
        if lease is None or lease.boot != self._boot:
            return 0.0
        return max(0.0, lease.deadline_s - leases.boottime_s())

    def renew(self, left_s: float, floor: Mapping[str, Want]) -> None:
        """Let the lease run for so many seconds from now.

        Raises:
            OSError: the file cannot be written; the old lease runs out.
        """
        lease = leases.Lease(leases.boottime_s() + left_s, self._boot, floor, self._top)
        leases.write_lease(self._state_dir / leases.FILE, lease)

    def watch(self) -> None:
        """Start a keeper where none is running.

        Raises:
            OSError: it cannot be started; or a resident one does not run.
        """
        if self._child is not None and self._child.poll() is None:
            return
        if self.kept():
            return
        if self._resident:
            raise ProcessLookupError(f"nobody holds {self._state_dir / leases.LOCK}: the container leave does not run")
        with (self._state_dir / "keeper.log").open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "services.qrm.keeper", str(self._state_dir), str(self._host_root)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def kept(self) -> bool:
        """Whether a keeper, of this life or an earlier one, watches the lease."""
        try:
            descriptor = os.open(self._state_dir / leases.LOCK, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    def fallen(self) -> bool:
        """Whether the keeper has applied the floor since the last time this was asked; False where none can tell."""
        try:
            (self._state_dir / leases.FALLEN).unlink()
        except OSError:
            return False
        return True

    async def stop(self) -> None:
        """Take the lease away and wait until the keeper, which an earlier qrm may have started, has seen that.

        A resident keeper applies the floor once the agent has ended.
        """
        if self._resident:
            return
        (self._state_dir / leases.FILE).unlink(missing_ok=True)
        for _ in range(round(STOP_WAIT_S / _POLL_S)):
            if not self.kept():
                break
            await asyncio.sleep(_POLL_S)
        if self._child is not None:
            self._child.poll()


@contextlib.contextmanager
def held_lock(state_dir: Path, patience_s: float) -> Iterator[None]:
    """Have the word over the node, as its keeper: while this is held, no other keeper writes.

    Raises:
        Unavailable: another one has it, for longer than we wait; or the folder cannot be written.
    """
    path, end_s = state_dir / leases.LOCK, leases.boottime_s() + patience_s
    try:
        while (held := take_lock(path, tries=1)) is None:
            if leases.boottime_s() >= end_s:
                raise Unavailable(f"{path}: still held after {patience_s:g} s; an agent's pod runs on this node",
                                  reason="agents")  # fmt: skip
            time.sleep(_POLL_S)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from error
    try:
        yield
    finally:
        os.close(held)


def forget_lease(state_dir: Path) -> None:
    """There is nothing any more that would have to end.

    Raises:
        OSError: the folder cannot be written.
    """
    for name in (leases.FILE, leases.FALLEN):
        (state_dir / name).unlink(missing_ok=True)
