"""The lease client renews qrm's lease, and ensures that a watchdog is alive.

On one host qrm starts the watchdog, and removes the lease and the watchdog on a clean stop. In a pod the watchdog is a
separate container, which exists before and after the agent, so the lease is left to it.
"""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from services import qrm
from services.qrm.adapters.lease import file as leases
from services.qrm.adapters.lease.lock import is_locked
from services.qrm.core.writes.plan import WantedSets

STOP_WAIT_S = 3.0
_POLL_S = 0.05


class LeaseClient:
    """The lease file and the watchdog's process of one state directory."""

    def __init__(self, state_dir: Path, host_root: Path, top: str, *, resident: bool = False) -> None:
        """`resident`: the watchdog is a container that qrm neither starts nor ends."""
        self._state_dir, self._host_root, self._top, self._resident = state_dir, host_root, top, resident
        self._boot = leases.boot_name(host_root)
        self._child: subprocess.Popen[bytes] | None = None
        self._floor: Mapping[str, WantedSets] = {}
        self._floor_text = leases.floor_text(self._floor)

    def left_s(self) -> float:
        """Return the seconds that the lease on disk still runs; 0 if there is none of this boot."""
        try:
            lease = self._of_this_boot()
        except ValueError:
            return 0.0
        return 0.0 if lease is None else max(0.0, lease.deadline_s - leases.boottime_s())

    def left_behind(self) -> bool:
        """Return whether there is a lease of this boot, or an unreadable one."""
        try:
            return self._of_this_boot() is not None
        except ValueError:
            return True

    def remove(self) -> None:
        """Remove the lease; a watchdog that is no container ends with it.

        Raises:
            OSError: the folder cannot be written.
        """
        leases.remove_lease(self._state_dir)

    def _of_this_boot(self) -> leases.Lease | None:
        """Raises ValueError where it cannot be read."""
        lease = leases.read_lease(self._state_dir / leases.FILE)
        # A deadline belongs to a boot: after another boot it is meaningless, and the sets are gone with it.
        return None if lease is None or lease.boot != self._boot else lease

    def renew(self, left_s: float, floor: Mapping[str, WantedSets]) -> None:
        """Let the lease run for so many seconds from now.

        Raises:
            OSError: the file cannot be written; the old lease runs out.
        """
        lease = leases.Lease(leases.boottime_s() + left_s, self._boot, floor, self._top)
        # Renewed with each advice, and mostly for the very same floor.
        if floor is not self._floor:
            self._floor, self._floor_text = floor, leases.floor_text(floor)
        leases.write_lease(self._state_dir / leases.FILE, lease, self._floor_text)

    def ensure_watchdog(self) -> None:
        """Start a watchdog if none is alive.

        Raises:
            OSError: it cannot be started; or a resident one does not run.
        """
        # `poll` also reaps a watchdog that has ended, or it would stay as a zombie of this process.
        if self._child is not None and self._child.poll() is None:
            return
        # A watchdog of an earlier run is fine as well: the lock shows it, whichever process started it.
        if self.watchdog_alive():
            return
        if self._resident:
            raise ProcessLookupError(f"nobody holds {self._state_dir / leases.LOCK}: the container leave does not run")
        with (self._state_dir / "keeper.log").open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{qrm.__name__}.keeper", str(self._state_dir), str(self._host_root)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                # Away from qrm's terminal and process group: what ends qrm must not end its watchdog. It keeps qrm's
                # OOM score: it is wanted most where memory has run out, and qrm with it.
                start_new_session=True,
            )

    def watchdog_alive(self) -> bool:
        """Whether a watchdog, of this life of the agent or an earlier one, watches the lease."""
        return is_locked(self._state_dir / leases.LOCK)

    def watchdog_fired(self) -> bool:
        """Return whether the watchdog has applied the floor since the last call; False if that cannot be known."""
        try:
            (self._state_dir / leases.FIRED).unlink()
        except OSError:
            return False
        return True

    async def stop(self) -> None:
        """Remove the lease and wait until the watchdog, which an earlier qrm may have started, has ended.

        A resident watchdog applies the floor after the agent has ended.
        """
        if self._resident:
            return
        # Removing the lease tells a watchdog of a clean stop: it needs no signal, so a stale process id hits no other
        # process.
        (self._state_dir / leases.FILE).unlink(missing_ok=True)
        for _ in range(round(STOP_WAIT_S / _POLL_S)):
            if not self.watchdog_alive():
                break
            await asyncio.sleep(_POLL_S)
        if self._child is not None:
            self._child.poll()
