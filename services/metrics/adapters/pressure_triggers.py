"""Wake metrics by the kernel's pressure triggers when tasks have stalled.

A trigger is armed by writing "some <stall us> <window us>" into a pressure file and waiting for POLLPRI on it (kernel
documentation, accounting/psi). All files are in one epoll set, and the event loop watches the descriptor of that set,
so no thread is needed. Polling a file's event also consumes it, and the loop already does so when it polls the nested
set. A wake therefore often names no file, and means only that some task has stalled.
"""

import asyncio
import os
import select
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from shared.adapters.host.hostfs import ABSENT

log = structlog.get_logger()

TRIGGERS = (b"some 100000 1000000\0", b"some 200000 2000000\0")
"""A tenth of the time stalled within 1 s; without CAP_SYS_RESOURCE the kernel takes only multiples of 2 s."""


RESOURCES = ("cpu", "memory")


def pressure_files(host_root: Path, groups: Sequence[Path]) -> list[str]:
    """Return the files to arm: the machine's, and on a host those of these groups; none if everything is a plain
    file.

    In a container `/proc/pressure` also describes the whole machine, and is writable, unlike the host's files that are
    mounted read-only: any task that stalls, in whatever group, shows there (docs/facts/linux-cpu.md#pressure).
    """
    machine = [f"/proc/pressure/{resource}" for resource in RESOURCES]
    if host_root == Path("/"):
        return machine + [str(group / f"{resource}.pressure") for group in groups for resource in RESOURCES]
    return machine if (host_root / "proc").is_mount() else []


class PressureTriggers:
    """Watches pressure files; a file that does not exist yet is armed later, and one that the kernel refuses is
    skipped."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._waiting = list(paths)
        self._armed: dict[int, str] = {}
        self._epoll: select.epoll | None = None

    @property
    def armed(self) -> Sequence[str]:
        """The files that can wake us now; none where the kernel has no triggers."""
        return list(self._armed.values())

    def arm(self, wake: Callable[[], None]) -> None:
        """Arm what is not armed yet; cheap when nothing is left to do. `wake` is called on the running loop."""
        if not self._waiting:
            return
        if self._epoll is None:
            self._epoll = select.epoll()
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._ready, wake)
        waiting, self._waiting = self._waiting, []
        for path in waiting:
            try:
                self._armed[_register(self._epoll, path)] = path
                log.info("pressure.armed", file=path)
            except OSError as error:
                # Not there yet, or a kernel without PSI: asking again after each pass is cheap.
                if error.errno in ABSENT:
                    self._waiting.append(path)
                else:
                    log.info("pressure.refused", file=path, why=str(error))

    def close(self) -> None:
        """Disarm everything."""
        if self._epoll is None:
            return
        # Before the descriptor is closed: its number may be another file's at once.
        asyncio.get_running_loop().remove_reader(self._epoll.fileno())
        for descriptor in self._armed:
            os.close(descriptor)
        self._armed.clear()
        self._epoll.close()
        self._epoll = None

    def _ready(self, wake: Callable[[], None]) -> None:
        if self._epoll is None:
            return
        for descriptor, events in self._epoll.poll(0):
            if events & select.EPOLLERR:  # its cgroup was removed; a new one of that name is armed by the next `arm`
                self._epoll.unregister(descriptor)
                os.close(descriptor)
                self._waiting.append(self._armed.pop(descriptor))
        wake()


def _register(epoll: select.epoll, path: str) -> int:
    """Return a descriptor with a trigger on it, watched by `epoll`.

    Raises:
        OSError: no such file, the kernel accepts none of the triggers, or it is no pressure file.
    """
    # Writable, for a trigger is written; it lives as long as the descriptor.
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        _write_trigger(descriptor)
        epoll.register(descriptor, select.EPOLLPRI)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _write_trigger(descriptor: int) -> None:
    first, second = TRIGGERS
    try:
        os.write(descriptor, first)
    except OSError:
        # Only now: the shorter window reacts faster, where the kernel lets us have it.
        os.write(descriptor, second)
