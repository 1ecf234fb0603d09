"""qrm's side of the lease: renew it, see to it that a keeper watches it, and take both away on a clean stop."""

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from services.qrm import lease as leases
from services.qrm.core.plan import Want

STOP_WAIT_S = 3.0
_POLL_S = 0.05


class LeaseKeeping:
    """The lease file and the keeper process of one state directory."""

    def __init__(self, state_dir: Path, host_root: Path, top: str) -> None:
        self._state_dir, self._host_root, self._top = state_dir, host_root, top
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
        lease = leases.Lease(leases.boottime_s() + left_s, self._boot, floor)
        leases.write_lease(self._state_dir / leases.FILE, lease)

    def watch(self) -> None:
        """Start a keeper where none is running.

        Raises:
            OSError: it cannot be started.
        """
        if self._child is not None and self._child.poll() is None:
            return
        if self.kept():
            return
        with (self._state_dir / "keeper.log").open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "services.qrm.keeper", str(self._state_dir), str(self._host_root), self._top],
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
        """Whether the keeper has applied the floor since the last time this was asked."""
        try:
            (self._state_dir / leases.FALLEN).unlink()
        except FileNotFoundError:
            return False
        return True

    async def stop(self) -> None:
        """Take the lease away and wait until the keeper, which an earlier qrm may have started, has seen that."""
        (self._state_dir / leases.FILE).unlink(missing_ok=True)
        for _ in range(round(STOP_WAIT_S / _POLL_S)):
            if not self.kept():
                break
            await asyncio.sleep(_POLL_S)
        if self._child is not None:
            self._child.poll()
