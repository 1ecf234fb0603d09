"""Every name in the state folder, its owner, and when it is removed. Files that are not listed here are not
Sublet's.

A new file in the state folder needs a line here, unless it is below `plugins/<name>/`, which is listed already.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

MARK = ".sublet-state"


class Until(Enum):
    """How long something in the state folder stays."""

    STOP = auto()
    """A clean stop, `sublet down`, or a reboot: it tells of processes, cgroups or a clock that are gone then."""
    FORGOTTEN = auto()
    """`--forget`: the record of evictions, the logs, an operator's pause."""
    UNINSTALLED = auto()
    """`--forget`, or Sublet leaves a cluster's node: it tells of tenants that a later installation does not know."""
    REMOVED_BY_HAND = auto()
    """An operator wrote it, or should look at it."""


@dataclass(frozen=True, slots=True)
class StateFile:
    """A name in the state folder, a file unless `folder`; `name` may end in digits that count up (`#`)."""

    name: str
    owner: str
    until: Until = Until.STOP
    folder: bool = False


STATE_FILES = (
    StateFile(MARK, "sublet up", Until.REMOVED_BY_HAND),
    StateFile("boot", "sublet up"),
    StateFile("up.lock", "sublet up"),
    StateFile("up.json", "sublet up"),
    StateFile("login.json", "sublet up"),
    StateFile("reader.json", "sublet up"),
    StateFile("page.json", "live page"),
    StateFile("logs", "sublet up", Until.FORGOTTEN, folder=True),
    StateFile("nats", "NATS server", Until.FORGOTTEN, folder=True),
    StateFile("simhost", "simulator", folder=True),
    StateFile("sim.json", "simulator"),
    StateFile("pods", "local runtime", folder=True),
    StateFile("cnr.json", "reporter"),
    StateFile("node-pods.json", "reporter"),
    StateFile("usage-past.json", "reporter"),
    StateFile("policy-past.json", "advisor", Until.UNINSTALLED),
    StateFile("checkpoint.json", "qrm"),
    StateFile("checkpoint.json.refused", "qrm", Until.REMOVED_BY_HAND),
    StateFile("former-values.json", "qrm"),
    StateFile("former-values.json.refused", "qrm", Until.REMOVED_BY_HAND),
    StateFile("lease.json", "qrm"),
    StateFile("lease.lock", "qrm"),
    StateFile("lease.fallen", "qrm"),
    StateFile("keeper.log", "qrm"),
    StateFile("keeper.log.1", "sublet up"),
    StateFile("ledger.lock", "evictor"),
    StateFile("ledger.db", "evictor", Until.FORGOTTEN),
    StateFile("ledger.db-wal", "evictor", Until.FORGOTTEN),
    StateFile("ledger.db-shm", "evictor", Until.FORGOTTEN),
    StateFile("ledger.db-journal", "evictor", Until.FORGOTTEN),
    StateFile("ledger.db.broken-#", "evictor", Until.REMOVED_BY_HAND),
    StateFile("ledger.db.broken-#-wal", "evictor", Until.REMOVED_BY_HAND),
    StateFile("ledger.db.broken-#-shm", "evictor", Until.REMOVED_BY_HAND),
    StateFile("taints.json", "evictor and operator", Until.REMOVED_BY_HAND),
    StateFile("evictions.paused", "operator", Until.FORGOTTEN),
    StateFile("config.yaml", "operator", Until.REMOVED_BY_HAND),
    StateFile("bridges", "sublet bridge", Until.FORGOTTEN, folder=True),
    StateFile("plugins", "plug-ins", folder=True),
)

WITNESSES = frozenset({"up.lock", "up.json", "checkpoint.json", "ledger.db"})
"""Where one of these lies beside nothing but known names, a Sublet that made no mark yet has worked."""
PREPARED = frozenset({"config.yaml", "taints.json", "evictions.paused", "bridges"})
"""What may lie there before the first `sublet up`."""

_BY_NAME = {one.name: one for one in STATE_FILES}
# Written aside, then renamed: `.up.json`, `.checkpoint.json.new`, `.cnr.json.k3_x9a2b`.
_ASIDE = re.compile(r"\.(?P<name>[a-z.-]+?)(?:\.new|\.[a-z0-9_]{8})?")


def known(name: str) -> StateFile | None:
    """Whose this name is; None for a name that Sublet never uses."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if (numbered := _BY_NAME.get(re.sub(r"(?<=\.broken-)[0-9]{1,9}", "#", name))) is not None:
        return numbered
    aside = _ASIDE.fullmatch(name)
    of = _BY_NAME.get(aside["name"]) if aside else None
    return StateFile(name, of.owner) if of is not None and not of.folder else None
