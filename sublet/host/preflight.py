"""Checks the requirements of a machine before `sublet up` starts anything, and reports everything that is missing at
once."""

import fcntl
import os

from shared.errors import Conflict, Unavailable, Unfit
from shared.settings import CommonSettings

SIM_OFFER = "try it without touching this machine: sublet up --substrate sim"


def check_host(common: CommonSettings) -> list[str]:
    """What this host lacks for the `host` substrate; empty when it is fit."""
    from shared.adapters.host.cgroup import Cgroups

    missing = []
    if os.geteuid() != 0:
        missing.append("root (cgroup files can be written by root only): run it with sudo")
    try:
        cgroups = Cgroups(common.host_root)
    except Unavailable as error:
        return [*missing, str(error)]
    # Asked as root only: for anybody else every folder is read-only, which says nothing of the mount.
    if not missing:
        for controller in cgroups.controllers:
            folder = cgroups.folder("", controller)
            if not os.access(folder, os.W_OK):
                missing.append(f"{folder} is read-only: in a container, give it a writable cgroup mount")
    if cgroups.version == 2:
        offered = (cgroups.root / "cgroup.controllers").read_text().split()
        missing += [f"cgroup controller {name} (see {cgroups.root}/cgroup.controllers)"
                    for name in ("cpuset", "cpu", "memory") if name not in offered]  # fmt: skip
    return missing


def require_fit(common: CommonSettings) -> None:
    """Refuse to start on a machine that lacks something.

    Raises:
        Unfit: lists all that is missing and offers the simulator.
    """
    missing = check_host(common) if common.substrate == "host" else []
    if missing:
        raise Unfit("this machine lacks:\n" + "".join(f"  - {line}\n" for line in missing) + SIM_OFFER)


def take_host(common: CommonSettings) -> int | None:
    """Hold this host's cgroups, whatever the state directory: a lock on their root folder, which leaves no file.

    Returns the descriptor that holds it; None where nothing is shared (simulated hosts).

    Raises:
        Conflict: another `sublet up` holds them.
    """
    from shared.adapters.host.cgroup import Cgroups

    if common.substrate != "host":
        return None
    folder = Cgroups(common.host_root).folder("", "cpuset")
    # The folder itself can be locked: two state folders on one host still have one cgroup tree.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise Conflict(f"another Sublet manages the cgroups of this host ({folder}); stop it first") from error
    return descriptor
