"""Labels and taints of a node by its role in a pool (docs/facts/katalyst-tide.md#marks); those of others stay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.central.core.tide.roles import ONLINE, Role, Standing

PREFIX = "tide.katalyst.kubewharf.io/"
POOL_LABEL, TYPE_LABEL, RESERVE_LABEL, TIDE_LABEL = (
    f"{PREFIX}{name}" for name in ("node-pool", "node-type", "reserve", "tide")
)
POD_LABEL, ONLINE_POD = f"{PREFIX}pod-type", "online"
"""On the pods of services."""
_LABELS = (POOL_LABEL, TYPE_LABEL, RESERVE_LABEL, TIDE_LABEL)


@dataclass(frozen=True, slots=True, order=True)
class TideTaint:
    """A taint of a Node."""

    key: str
    effect: str = "NoExecute"
    value: str = "true"


BATCH_UNWANTED, SERVICES_UNWANTED = TideTaint(f"{PREFIX}offline-not-used"), TideTaint(f"{PREFIX}online-not-used")


@dataclass(frozen=True, slots=True)
class SideTaints:
    """The taint of each side: pods of that side tolerate it, pods of the other side do not."""

    online: TideTaint = BATCH_UNWANTED
    offline: TideTaint = SERVICES_UNWANTED
    former: frozenset[str] = frozenset()
    """Keys that the pool had before; they may still be on nodes."""

    def of(self, role: Role) -> TideTaint:
        """Return the taint of a node with this role."""
        return self.online if role in ONLINE else self.offline

    @property
    def keys(self) -> frozenset[str]:
        """Our taint keys, and the default ones, which may remain from before."""
        return frozenset({*self.in_force, BATCH_UNWANTED.key, SERVICES_UNWANTED.key, *self.former})

    @property
    def in_force(self) -> frozenset[str]:
        """Those of now."""
        return frozenset({self.online.key, self.offline.key})


@dataclass(frozen=True, slots=True)
class TideMarks:
    """All labels and taints of a node, including foreign ones."""

    labels: Mapping[str, str]
    taints: tuple[TideTaint, ...]


def marks_of(
    role: Role | None, pool: str, labels: Mapping[str, str], taints: Sequence[TideTaint], own: SideTaints
) -> TideMarks:
    """Return the marks of a node with this role in a pool; None: it leaves the pool."""
    kept = {key: value for key, value in labels.items() if key not in _LABELS}
    others = [taint for taint in taints if taint.key not in own.keys]
    if role is None:
        return TideMarks(kept, tuple(sorted(others)))
    is_tide = role.startswith("tide_")
    ours = {
        POOL_LABEL: pool,
        TYPE_LABEL: "online" if role in ONLINE else "offline",
        RESERVE_LABEL: "false" if is_tide else "true",
        **({TIDE_LABEL: "true"} if is_tide else {}),
    }
    return TideMarks({**kept, **ours}, tuple(sorted([*others, own.of(role)])))


def standing_of(labels: Mapping[str, str], pool: str) -> Standing:
    """The role that a node's labels say; None where they say none, or what no role is."""
    marked = labels.get(POOL_LABEL)
    if marked is None:
        return None
    if marked != pool:
        return "other"
    match labels.get(TYPE_LABEL), labels.get(RESERVE_LABEL), labels.get(TIDE_LABEL):
        case "online", "true", _:
            return "online_reserve"
        case "offline", "true", _:
            return "offline_reserve"
        case "online", _, "true":
            return "tide_online"
        case "offline", _, "true":
            return "tide_offline"
    return None
