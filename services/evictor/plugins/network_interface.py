"""A network card is down for long: the pods that were given it run elsewhere. Soft.

The rule is `nic_pressure` (docs/facts/katalyst-eviction.md#network-card). Off by default, as in Katalyst. Whether a
card has a link, and with it bandwidth, is read from the node's `extra["nic_up.<card>"]` (0: down); how much bandwidth
does not matter, and a virtual card does not say. A pod is on the card that its annotation
`katalyst.kubewharf.io/nic_selection_result` names, which only a pod that asks for bandwidth bears.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.arbiter.soft_order import going_first
from services.evictor.core.detectors.nic import BANDWIDTHS, Nic, NicPod, stranded, unhealthy
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.core.pods.qos import DOMAIN

SCOPE = "NICHealth"
FIGURE = "nic_up."
SELECTION = f"{DOMAIN}nic_selection_result"


class Settings(PluginSettings):
    """How long a card may be down."""

    enabled: bool = False
    nic_unhealthy_tolerance_s: Annotated[float, Field(ge=0, le=86400)] = 300.0
    """How long a card must have been down until its pods may go."""
    longest_gap_s: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Two samples further apart start every clock anew."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Since when each card has been down, and when that was last looked at."""

    down_since_s: Mapping[str, float] = field(default_factory=dict)
    seen_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class CardsDown(Pressure):
    """The pressure, and the pods on cards that are down, with the card."""

    pods: tuple[tuple[Pod, str], ...] = field(default=())


class _OnCard(NicPod):
    pod: Pod

    @property
    def order(self) -> str:
        """Names alone may be borne twice."""
        return self.pod.key


def evaluate(memory: Memory, view: View, settings: Settings) -> tuple[Memory, CardsDown | Silence]:
    """Follow since when each card is down. A card without a figure is not down: absent is not zero."""
    extra = view.sample.node_reading.extra
    up = {name.removeprefix(FIGURE): figure for name, figure in extra.items() if name.startswith(FIGURE)}
    if not up:
        return Memory(), "unknown"
    lost = memory.seen_at_s is not None and view.t_s - memory.seen_at_s > settings.longest_gap_s
    before: Mapping[str, float] = {} if lost else memory.down_since_s
    down = unhealthy(Nic(name=name, allocatable_bandwidth=figure) for name, figure in up.items())
    since = {nic.name: before.get(nic.name, view.t_s) for nic in down}
    long = [nic for nic in down if view.t_s - since[nic.name] >= settings.nic_unhealthy_tolerance_s]
    pods = stranded([on for r in view.pods if not r.pod.terminating and (on := _on_card(r.pod)) is not None], long)
    memory = Memory(since, view.t_s)
    if not pods:
        return memory, "calm"
    return memory, CardsDown(
        hard=False,
        scope=SCOPE,
        observed=max(view.t_s - since[nic.name] for nic in long),
        threshold=settings.nic_unhealthy_tolerance_s,
        why=Reason(
            rule="network card down for too long",
            numbers={"cards": ",".join(nic.name for nic in long), "pods": len(pods)},
        ),
        pods=tuple((on.pod, on.nic_selection_result or "") for on in pods),
    )


def rank(_view: View, pressure: CardsDown, _settings: Settings) -> tuple[Candidate, ...]:
    """Reclaimed pods before tenants, low priority first, then by name."""
    card = {pod.uid: name for pod, name in pressure.pods}
    return tuple(
        Candidate(pod, Reason(rule="on a network card that is down", numbers={"card": card[pod.uid]}))
        for pod in going_first([pod for pod, _ in pressure.pods])
    )


def _on_card(pod: Pod) -> _OnCard | None:
    card = pod.annotations.get(SELECTION)
    if card is None:
        return None
    return _OnCard(name=pod.name, requests={BANDWIDTHS[0]: 1}, nic_selection_result=card, pod=pod)


PLUGIN = Plugin(name="network-eviction-plugin", settings=Settings, start=Memory, evaluate=evaluate, rank=rank)
