"""Records in a state folder the boot in which it was last used, because the folder outlives a reboot."""

import contextlib
import os
from pathlib import Path

from shared.adapters.files.replaced import write_whole

NAME = "boot"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_BYTES = 64
"""The kernel's name of a boot is a UUID."""


def this_boot() -> str:
    """Return the kernel's id of this boot; empty if it has none."""
    # The machine's own, even for a simulated one: the processes in a folder's records are those of this kernel.
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text().strip()
    return ""


def of_earlier_boot(folder: Path) -> bool:
    """Return whether a state folder was last used in another boot: its processes, groups and clock readings are
    gone."""
    # Where the kernel does not name this boot nothing is known: what still runs must not be forgotten.
    return (boot := this_boot()) != "" and _noted(folder) not in ("", boot)


def note_boot(folder: Path) -> None:
    """Write down that a state folder is used in this boot, if the kernel names it.

    Raises:
        OSError: it cannot be written; the last note stays.
    """
    if (boot := this_boot()) not in ("", _noted(folder)):
        write_whole(folder / NAME, f"{boot}\n".encode())


def _noted(folder: Path) -> str:
    """The boot that a state folder was last used in; empty where it does not say."""
    with contextlib.suppress(OSError):
        handle = os.open(folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace").strip()
    return ""
