"""The lease file says until when the reclaimed limits hold, and which floor is written when the lease expires.

qrm renews it on fresh advice; the watchdog (`services.qrm.keeper`), a separate process, applies the floor when the
lease is not renewed. Time is CLOCK_BOOTTIME, which both share and which continues while the machine sleeps. Standard
library only, because the watchdog must stay small.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.qrm.core.writes.plan import Sets, WantedSets
from shared.adapters.files.replaced import write_whole
from shared.core.cpus.cpuset import CpuSet

FILE = "lease.json"
LOCK = "lease.lock"
FIRED = "lease.fallen"
"""Written by the watchdog when it has applied the floor, so qrm does not take the change for a foreign writer's."""
SCHEMA = 1
LARGEST_BYTES = 8 << 20
"""Some 100 bytes a group: a node has a few hundred."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One lease. `deadline_s` counts since boot; `boot` names that boot; the floor's groups lie below `top`."""

    deadline_s: float
    boot: str
    floor: Mapping[str, WantedSets]
    top: str = ""


def boottime_s() -> float:
    """Seconds since boot, sleep included."""
    # Neither the wall clock, which users set, nor CLOCK_MONOTONIC, which stops while the machine sleeps.
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_name(host_root: Path) -> str:
    """Return the kernel's id of this boot; empty if it has none."""
    try:
        return (host_root / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def floor_text(floor: Mapping[str, WantedSets]) -> str:
    """Return a floor as text for the file."""
    return json.dumps(
        {
            group: {"cpus": str(want.sets.cpus), "mems": str(want.sets.mems), "rank": want.rank, "own": want.own}
            for group, want in floor.items()
        }
    )


def write_lease(path: Path, lease: Lease, floor: str | None = None) -> None:
    """Replace the lease; `floor` is the text of its floor if that is known already.

    Raises:
        OSError: it could not be written; the old one stays and expires.
    """
    # `deadline_s` is on this kernel's clock only; the boot id reveals a file that outlived it.
    head = json.dumps({"schema": SCHEMA, "deadline_s": lease.deadline_s, "boot": lease.boot, "top": lease.top})
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f'{head[:-1]}, "floor": {floor_text(lease.floor) if floor is None else floor}}}'
    write_whole(path, text.encode())  # it ends with this boot anyway


def read_lease(path: Path) -> Lease | None:
    """Return the lease; None if there is none.

    Raises:
        ValueError: the file is not a lease of this version, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            # One byte more than allowed: a file that is too large is refused as such, and not cut off and parsed.
            text = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"lease {path}: {error.strerror}") from error
    try:
        if len(text) > LARGEST_BYTES:
            raise ValueError(f"more than {LARGEST_BYTES} bytes")
        body = json.loads(text)
        if body["schema"] != SCHEMA:
            raise ValueError(f"schema {body['schema']!r}, this version reads {SCHEMA}")
        floor = {
            str(group): WantedSets(
                Sets(CpuSet.parse(want["cpus"]), CpuSet.parse(want["mems"])), want["rank"], bool(want.get("own"))
            )
            for group, want in body["floor"].items()
        }
        return Lease(float(body["deadline_s"]), str(body["boot"]), floor, str(body["top"]))
    # Whatever the file holds, the watchdog has to live on: it goes by the last lease that it could read.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"lease {path}: {error!r}") from error


def remove_lease(state_dir: Path) -> None:
    """Remove the lease and the watchdog's mark: nothing of qrm's is in force that would have to end.

    Raises:
        OSError: the folder cannot be written.
    """
    for name in (FILE, FIRED):
        (state_dir / name).unlink(missing_ok=True)
