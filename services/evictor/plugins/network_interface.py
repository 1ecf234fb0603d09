"""Detects a network card that has been down for long: soft, so that the pods on it run elsewhere.

The rule is `nic_pressure` (docs/facts/katalyst-eviction.md#network-card). Off by default, as in Katalyst. The node's
figure `extra["nic_up.<card>"]` says whether a card has a link (0: down); the bandwidth does not matter, and a virtual
card does not report it. The annotation `katalyst.kubewharf.io/nic_selection_result` names the card of a pod; only a pod
that requests bandwidth has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.arbiter.soft_order import going_first
from services.evictor.core.detectors.nic import CardPod, is_down, stranded
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.core.pods.qos import DOMAIN

SCOPE = "NICHealth"
SELECTION = f"{DOMAIN}nic_selection_result"


class NetworkInterfaceSettings(PluginSettings):
    """How long a card may be down."""

    enabled: bool = False
    nic_unhealthy_tolerance_s: Annotated[float, Field(ge=0, le=86400)] = 300.0
    """How long a card must have been down before its pods are candidates."""
    longest_gap_s: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Two samples further apart restart every clock."""


@dataclass(frozen=True, slots=True)
class DownCards:
    """The time since which each card has been down, and the time of the last check."""

    down_since_s: Mapping[str, float] = field(default_factory=dict)
    seen_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class CardsDown(Pressure):
    """The pressure, and the pods on cards that are down, with the card."""

    pods: tuple[tuple[Pod, str], ...] = field(default=())


def evaluate(
    memory: DownCards, view: View, settings: NetworkInterfaceSettings
) -> tuple[DownCards, CardsDown | Silence]:
    """Track since when each card has been down. A card without a figure is not down: absent is not zero."""
    up = view.sample.node_reading.nic_up
    # Nothing is observed, so no card may count as down for the time until the next figure: every clock restarts.
    if not up:
        return DownCards(), "unknown"
    # Between samples that far apart a card may have been up.
    lost = memory.seen_at_s is not None and view.t_s - memory.seen_at_s > settings.longest_gap_s
    before: Mapping[str, float] = {} if lost else memory.down_since_s
    since = {card: before.get(card, view.t_s) for card, figure in sorted(up.items()) if is_down(figure)}
    long = [card for card, since_s in since.items() if view.t_s - since_s >= settings.nic_unhealthy_tolerance_s]
    pods = stranded(_on_cards(view), long)
    memory = DownCards(since, view.t_s)
    if not pods:
        return memory, "calm"
    return memory, CardsDown(
        hard=False,
        scope=SCOPE,
        observed=max(view.t_s - since[card] for card in long),
        threshold=settings.nic_unhealthy_tolerance_s,
        why=Reason(
            rule="network card down for too long",
            numbers={"cards": ",".join(long), "pods": len(pods)},
        ),
        pods=tuple((pod.of, card) for pod in pods for card in pod.cards),
    )


def rank(_view: View, pressure: CardsDown, _settings: NetworkInterfaceSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods before tenants, low priority first, then by name."""
    card = {pod.uid: name for pod, name in pressure.pods}
    return tuple(
        Candidate(pod, Reason(rule="on a network card that is down", numbers={"card": card[pod.uid]}))
        for pod in going_first([pod for pod, _ in pressure.pods])
    )


def _on_cards(view: View) -> list[CardPod[Pod]]:
    staying = (reading.pod for reading in view.pods if not reading.pod.terminating)
    return [CardPod(pod.key, (card,), pod) for pod in staying if (card := pod.annotations.get(SELECTION)) is not None]


PLUGIN = Plugin(
    name="network-eviction-plugin", settings=NetworkInterfaceSettings, start=DownCards, evaluate=evaluate, rank=rank
)
