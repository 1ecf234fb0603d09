"""What may go wrong in a world: each fault has a time, a target, a length and an amount."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from simulated_node import Machine
    from simulated_world import World

NODES = ("n1", "n2", "n3")
CENTRALS = ("central-a", "central-b")
HORIZON_S = 85.0
"""Faults begin within this time, and are healed at its end at the latest."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault."""

    at_s: float
    kind: str
    target: str
    for_s: float = 0.0
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A world: all that chance decides in it follows from the seed, what goes wrong from the faults."""

    seed: int
    faults: tuple[Fault, ...]
    cgroup_version: Literal[1, 2] = 2
    whole: tuple[str, ...] = NODES
    """Nodes with a whole agent; the others only send heartbeats."""
    layout: Literal["kubelet", "own"] = "kubelet"
    """Whose groups the pods are in: kubelet's, or Sublet's own with one for each class."""
    shards: int = 1
    """Into how many shards the hub divides the heartbeats, which the centrals then hear together."""

    def document(self) -> dict[str, Any]:
        """As it stands in a case."""
        return {**asdict(self), "faults": [asdict(fault) for fault in self.faults]}

    @staticmethod
    def of(document: dict[str, Any]) -> "Plan":
        """A plan as it stands in a case."""
        faults = tuple(Fault(**one) for one in document["faults"])
        return Plan(**{**document, "faults": faults, "whole": tuple(document["whole"])})


Undo = Callable[[], None]


def nothing() -> None:
    """What has no length needs no end."""


def _flag(part: str, name: str, value: Any = None) -> Callable[["World", Any, float], Undo]:
    """Set an attribute of a target, or of a part of it, for a time."""

    def begin(_world: "World", target: Any, amount: float) -> Undo:
        place = getattr(target, part) if part else target
        before = getattr(type(place)(), name) if part else False
        setattr(place, name, amount if value is None else value)
        return lambda: setattr(place, name, before)

    return begin


def _both(*kinds: Callable[["World", Any, float], Undo]) -> Callable[["World", Any, float], Undo]:
    def begin(world: "World", target: Any, amount: float) -> Undo:
        ends = [kind(world, target, amount) for kind in kinds]

        def undo() -> None:
            for end in ends:
                end()

        return undo

    return begin


def _offline(_world: "World", target: Any, _amount: float) -> Undo:
    return target.disconnect()  # type: ignore[no-any-return]


def _kill(_world: "World", target: Any, _amount: float) -> Undo:
    target.crash()
    return nothing


def _kill_at_step(_world: "World", target: Any, amount: float) -> Undo:
    if target.agent is not None:
        target.agent.dies_in = int(amount)
    return nothing


def _freeze(world: "World", target: Any, _amount: float) -> Undo:
    process = target.agent
    if process is None:
        return nothing
    process.frozen = True
    return lambda: world.loop.thaw(process)


def _freeze_keeper(world: "World", target: "Machine", _amount: float) -> Undo:
    process = target.keeper
    if process is None:
        return nothing
    process.frozen = True
    return lambda: world.loop.thaw(process)


def _stop(_world: "World", target: Any, _amount: float) -> Undo:
    if target.stop is not None:
        target.stop.set()
    return nothing


def _down(_world: "World", target: "Machine", _amount: float) -> Undo:
    target.down = True
    target.crash()

    def undo() -> None:
        target.down = False

    return undo


def _reboot(_world: "World", target: "Machine", _amount: float) -> Undo:
    target.reboot()
    return nothing


def _skew(_world: "World", target: Any, amount: float) -> Undo:
    target.skew_s += amount
    if target.agent is not None:
        target.agent.skew_s = target.skew_s
    return nothing


def _refusal(_world: "World", target: "Machine", amount: float) -> Undo:
    target.kernel.refusal = amount

    def undo() -> None:
        target.kernel.refusal = 0.0

    return undo


def _read_only(_world: "World", target: "Machine", _amount: float) -> Undo:
    kernel = target.kernel
    kernel.read_only = True

    def undo() -> None:
        kernel.read_only = False

    return undo


def _short(world: "World", target: "Machine", _amount: float) -> Undo:
    target.short_since_s = world.now_s

    def undo() -> None:
        target.short_since_s, target.short_until_s = None, world.now_s

    return undo


def _streams_full(world: "World", _target: Any, _amount: float) -> Undo:
    world.broker.full = True

    def undo() -> None:
        world.broker.full = False

    return undo


def _replay(world: "World", _target: Any, amount: float) -> Undo:
    world.replay(round(amount))
    return nothing


def _forge(world: "World", target: "Machine", _amount: float) -> Undo:
    world.forge(target.name)
    return nothing


def _new_pod(world: "World", target: "Machine", amount: float) -> Undo:
    world.new_pod(target, ("reclaimed_cores", "shared_cores", "dedicated_cores")[int(amount) % 3])
    return nothing


def _delete_pod(world: "World", target: "Machine", amount: float) -> Undo:
    world.delete_pod(target, int(amount), again=False)
    return nothing


def _recreate_pod(world: "World", target: "Machine", amount: float) -> Undo:
    world.delete_pod(target, int(amount), again=True)
    return nothing


def _spike(_world: "World", target: "Machine", amount: float) -> Undo:
    uids = [pod.uid for pod in target.pods() if pod.qos == "shared_cores"]
    target.usage_cores |= dict.fromkeys(uids, amount)
    return lambda: target.usage_cores.update(dict.fromkeys(uids, 0.3))


def _budget(world: "World", _target: Any, amount: float) -> Undo:
    world.api.budgets["batch"] = {"app": "batch", "allowed": int(amount)}
    return world.api.budgets.clear


KINDS: dict[str, tuple[str, Callable[["World", Any, float], Undo], tuple[float, float]]] = {
    # by kind: who is hit (n: a node, c: a central, a: either, w: the world), how it begins, and its amounts
    "bus_cut": ("a", _both(_flag("link", "deaf", True), _flag("link", "mute", True)), (0, 0)),
    "bus_deaf": ("a", _flag("link", "deaf", True), (0, 0)),
    "bus_mute": ("a", _flag("link", "mute", True), (0, 0)),
    "bus_offline": ("a", _offline, (0, 0)),
    "bus_loss": ("a", _flag("link", "loss"), (0.05, 0.6)),
    "bus_late": ("a", _flag("link", "late"), (0.1, 0.9)),
    "bus_doubling": ("a", _flag("link", "doubling"), (0.1, 0.9)),
    "bus_lost_acks": ("a", _flag("link", "lost_acks"), (0.2, 1.0)),
    "streams_full": ("w", _streams_full, (0, 0)),
    "api_away": ("a", _flag("route", "away", True), (0, 0)),
    "api_refusing": ("a", _flag("route", "refusing"), (0.1, 0.9)),
    "api_conflicts": ("a", _flag("route", "conflicts"), (0.1, 0.7)),
    "api_lost_answers": ("a", _flag("route", "lost_answers"), (0.1, 0.7)),
    "api_slow": ("a", _flag("route", "slow_s"), (0.1, 1.0)),
    "api_watch_breaks": ("a", _flag("route", "breaks"), (0.05, 0.5)),
    "kill": ("a", _kill, (0, 0)),
    "kill_at_step": ("a", _kill_at_step, (0, 60)),
    "freeze": ("a", _freeze, (0, 0)),
    "stop": ("a", _stop, (0, 0)),
    "agent_down": ("n", _down, (0, 0)),
    "reboot": ("n", _reboot, (0, 0)),
    "freeze_watchdog": ("n", _freeze_keeper, (0, 0)),
    "agent_unready": ("n", _flag("", "unready", True), (0, 0)),
    "kubelet_down": ("n", _flag("", "kubelet_down", True), (0, 0)),
    "clock_jump": ("a", _skew, (-600, 600)),
    "kernel_refuses": ("n", _refusal, (0.05, 0.7)),
    "kernel_read_only": ("n", _read_only, (0, 0)),
    "disk_full": ("n", _flag("", "disk_full", True), (0, 0)),
    "short_of_memory": ("n", _short, (0, 0)),
    "metrics_silent": ("n", _flag("", "metrics_silent", True), (0, 0)),
    "tenant_spike": ("n", _spike, (1, 10)),
    "new_pod": ("n", _new_pod, (0, 3)),
    "delete_pod": ("n", _delete_pod, (0, 10)),
    "recreate_pod": ("n", _recreate_pod, (0, 10)),
    "budget": ("w", _budget, (0, 2)),
    "replay_heartbeats": ("w", _replay, (1, 40)),
    "forged_heartbeat": ("n", _forge, (0, 0)),
}
