"""A state folder on a disk outlives the machine's boot: it says which boot it was last used in."""

import contextlib
import os
from pathlib import Path

from shared.adapters.files.replaced import write_whole
from shared.adapters.host.hostfs import read_text

NAME = "boot"
_MAX_BYTES = 64
"""The kernel's name of a boot is a UUID."""


def this_boot() -> str:
    """The kernel's name of this boot; empty where it has none."""
    # The machine's own, also for a simulated one: the processes that a folder tells of are those of this kernel.
    return (read_text("/proc/sys/kernel/random/boot_id") or "").strip()


def noted_boot(folder: Path) -> str:
    """The boot that a state folder was last used in; empty where it does not say."""
    with contextlib.suppress(OSError):
        handle = os.open(folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace").strip()
    return ""


def note_boot(folder: Path, boot: str) -> None:
    """Write down that a state folder is used in this boot.

    Raises:
        OSError: it cannot be written; the last note stays.
    """
    if boot != noted_boot(folder):
        write_whole(folder / NAME, f"{boot}\n".encode())
