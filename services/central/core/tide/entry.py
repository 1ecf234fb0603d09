"""The next step of a node that is to get a role: closed first, emptied by evictions, and only then marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from services.central.core.tide.change import seconds_since
from services.central.core.tide.edits import PoolMarks
from services.central.core.tide.roles import ONLINE, Role, Standing
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen

What = Literal["wait", "close", "evict", "enter", "give_up"]
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Move:
    """A node is to get a role."""

    node: str
    role: Role
    before: Standing
    why: str
    for_pod: str | None = None
    hindrance: str = ""
    """Why the node must not leave the services' side now; empty if nothing prevents it."""

    @property
    def changes_side(self) -> bool:
        """Whether it is on the other side, or on none."""
        return self.before is None or (self.before in ONLINE) != (self.role in ONLINE)


@dataclass(frozen=True, slots=True)
class EntryStep:
    """What is done now, and why; `pods` must leave, by key."""

    what: What
    why: str
    pods: tuple[str, ...] = ()


def unwelcome(pods: Sequence[TidePodSeen], role: Role, own: PoolMarks) -> list[TidePodSeen]:
    """Return the pods on a node that the taint of its new side would evict, by key.

    A DaemonSet's pod or a mirror pod cannot be moved elsewhere: only the taint decides about it.
    """
    taint = own.taints.of(role)
    return sorted(
        (pod for pod in pods if not pod.stays and not pod.placement.tolerates(taint)), key=lambda pod: pod.key
    )


def entry_step(
    move: Move, node: TideNodeSeen, leaving: Sequence[TidePodSeen], now: datetime, limit_s: float
) -> EntryStep:
    """The next step; `leaving` are those that are unwelcome there now, read from the API server itself."""
    to_online, age_s = move.role in ONLINE, None if node.change is None else seconds_since(node.change.since, now)
    begun = age_s is not None
    if move.hindrance:
        return EntryStep("give_up" if begun else "wait", move.hindrance)
    kept = [pod.key for pod in leaving if pod.critical or (to_online and pod.online)]
    if kept:
        # Belongs to a service on its own side, or to the cluster: the pod was overlooked when the pool was created.
        why = f"{_named(kept)} does not tolerate the taint of the {_side(to_online)} side; add the toleration"
        return EntryStep("give_up" if begun else "wait", why)
    if age_s is None:
        return EntryStep("close", move.why)
    if not leaving:
        return EntryStep("enter", move.why)
    names = _named([pod.key for pod in leaving])
    if age_s < limit_s:
        going = tuple(pod.key for pod in leaving if not pod.terminating)
        return EntryStep("evict", f"waits at most {limit_s:.0f} s for {names} to leave", going)
    if to_online:
        # The services' own node is given back in time, also against the budgets of batch work.
        return EntryStep("enter", f"{names} did not leave within {limit_s:.0f} s; the taint ends what is left")
    return EntryStep("give_up", f"{names} did not leave within {limit_s:.0f} s; no service is ended by force")


def _side(online: bool) -> str:
    return "services'" if online else "batch"


def _named(keys: Sequence[str]) -> str:
    more = len(keys) - MOST_NAMED
    return ", ".join(keys[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
