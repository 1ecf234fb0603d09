"""Selects the Sublet of this machine that a command addresses: the one in the settings, the user's own, or root's.

A `sublet up` of root publishes its state folder in `/run/sublet.json`, which everyone may read, and which contains no
secret.
"""

import functools
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shared.adapters.files.replaced import replace_file
from shared.contracts.services import NODE_SERVICES
from shared.errors import Unfit
from shared.settings import CommonSettings, common_settings, raw_settings
from sublet.bus_login import read_own_json
from sublet.invocation import as_root
from sublet.output import printable

SYSTEM_FILE = Path("/run/sublet.json")
"""Outside of the state folder, which others may not enter; in a folder in which root alone can write."""
RECORD = "up.json"


@dataclass(frozen=True, slots=True)
class Instance:
    """A `sublet up`: where it keeps its state, and its process."""

    state_dir: str
    pid: int
    started_ticks: int
    """When the process started, in the kernel's ticks since the boot: a later process with this number is another."""
    node: str
    substrate: str
    nats_server: str
    """Without user and password."""
    version: str

    def words(self) -> str:
        """The instance for a person, on one line."""
        return printable(f"{self.substrate} node {self.node}, process {self.pid}, state folder {self.state_dir}")


@dataclass(frozen=True, slots=True)
class MeantInstance:
    """What a command works on. `running` is None where no `sublet up` holds the state folder."""

    state_dir: Path
    running: Instance | None = None
    foreign: bool = False
    """Whether it is root's, and this user is not root."""
    also: Instance | None = None
    """Another one that runs here, and is not meant."""


def started_ticks(pid: int) -> int:
    """When a process started; 0 where the kernel does not show it."""
    try:
        # Behind the name, which may hold spaces and brackets, the 20th field (proc(5), starttime is the 22nd).
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def advertise(instance: Instance, file: Path = SYSTEM_FILE) -> None:
    """Tell every user of this machine where this Sublet is found.

    Raises:
        Unavailable: the file cannot be written.
    """
    replace_file(file, json.dumps(asdict(instance)).encode(), what="address of this Sublet", mode=0o644)


def withdraw(pid: int, file: Path = SYSTEM_FILE) -> None:
    """Take the advertisement of a process back; that of another process stays."""
    if read_own_json(file).get("pid") == pid:
        file.unlink(missing_ok=True)


def running_instance(file: Path) -> Instance | None:
    """The instance that a file tells of, if this user or root wrote it and the process still runs."""
    found = _instance(read_own_json(file), file)
    return found if found is not None and _runs(found) else None


def _instance(told: Mapping[str, Any], file: Path) -> Instance | None:
    pid, ticks = told.get("pid"), told.get("started_ticks", 0)
    # By type: true is a number for Python.
    if type(pid) is not int or type(ticks) is not int or pid < 1:
        return None
    node, substrate, server, version = (
        str(told.get(key, "")) for key in ("node", "substrate", "nats_server", "version")
    )
    return Instance(str(told.get("state_dir", file.parent)), pid, ticks, node, substrate, server, version)


def _runs(instance: Instance) -> bool:
    try:
        os.kill(instance.pid, 0)
    except PermissionError:  # somebody else's, and there
        pass
    except (OSError, OverflowError):
        return False
    seen = started_ticks(instance.pid)
    return 0 in (seen, instance.started_ticks) or seen == instance.started_ticks


def meant_instance(common: CommonSettings, *, chosen: bool) -> MeantInstance:
    """The instance that a command works on. `chosen`: the settings name the state folder, and nothing is searched.

    A user's own goes before that of root: whoever has started one in his own folder means that.
    """
    own = running_instance(common.state_dir / RECORD)
    if chosen:
        return MeantInstance(common.state_dir, own)
    system = running_instance(SYSTEM_FILE)
    if system is not None and Path(system.state_dir) == common.state_dir:
        own, system = own or system, None
    if own is not None or system is None:
        return MeantInstance(common.state_dir, own, also=system)
    return MeantInstance(Path(system.state_dir), system, foreign=os.geteuid() != 0)


def this_instance() -> MeantInstance:
    """The instance that a command works on, by the settings; where another one runs too, one line says so."""
    raw = raw_settings()
    meant = meant_instance(common_settings(raw), chosen="state_dir" in raw)
    if meant.running is not None and meant.also is not None:
        _note(
            f"this is your own Sublet ({meant.running.words()}); another runs here ({meant.also.words()}): {as_root()}"
        )
    return meant


@functools.cache
def _note(text: str) -> None:
    """Once for each process, however often a command asks."""
    print(f"sublet: {text}", file=sys.stderr)


def instance_settings() -> CommonSettings:
    """The settings, with the state folder of the instance that is meant."""
    return common_settings(raw_settings()).model_copy(update={"state_dir": this_instance().state_dir})


def writable_settings() -> CommonSettings:
    """The same for a command that works on the files in the state folder.

    Raises:
        Unfit: root's Sublet is meant, and this user is not root.
    """
    meant = this_instance()
    if meant.foreign and meant.running is not None:
        raise Unfit(f"the Sublet of this machine is root's ({meant.running.words()}), and you are not: {as_root()}")
    return instance_settings()


def service_logs() -> Mapping[str, str]:
    """Where each service of the instance writes its log; empty where this user may not know."""
    told = read_own_json(this_instance().state_dir / RECORD).get("services")
    rows = told if isinstance(told, Mapping) else {}
    found = {str(name): str(row["log"]) for name, row in rows.items() if isinstance(row, Mapping) and "log" in row}
    # The five services of a node in one process share its log.
    return {**dict.fromkeys(NODE_SERVICES, found["node"]), **found} if "node" in found else found
