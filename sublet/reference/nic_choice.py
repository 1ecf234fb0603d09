"""Which network card a container that requests bandwidth gets, as Katalyst's agent chooses.

No service follows it: the cluster's network plugin creates a pod's network, without asking (docs/isolation.md).

Facts: docs/facts/katalyst-isolation.md#network-cards.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision

NamespaceType = Literal["host", "host_preferred", "not_host", "not_host_preferred"]
EGRESS_PERCENT, INGRESS_PERCENT = 94, 90
"""Of a link's speed that pods may ask for."""
Mbps = Annotated[int, Field(ge=0, lt=1 << 53)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Numas = list[Annotated[int, Field(ge=0, lt=1 << 20)]]


class BandwidthAsked(Question):
    """An amount for each direction."""

    egress_mbps: Mbps = 0
    ingress_mbps: Mbps = 0


NO_BANDWIDTH = BandwidthAsked()


class NicAsked(Question):
    """A card; without a namespace it is the host's."""

    name: Name
    speed_mbps: Mbps
    numas: Numas
    netns: Name | None = None
    healthy: bool = True
    allocated: BandwidthAsked = NO_BANDWIDTH


class CardQuestion(Question):
    """The cards in order, what is kept of the first, and what is asked for."""

    nics: list[NicAsked]
    reserved: BandwidthAsked = NO_BANDWIDTH
    request: BandwidthAsked
    namespace_type: NamespaceType | None = None
    hint_numas: Numas | None = None


class NicFree(Answer):
    """What is left of a card."""

    egress_mbps: int
    ingress_mbps: int


class CardAnswer(Answer):
    """The card, null: none fits; and what is free before it is given away."""

    nic: str | None
    free: dict[str, NicFree]


@decision("nic_choice", area="isolation", asks=CardQuestion, answers=CardAnswer)
def nic_choice(question: CardQuestion) -> CardAnswer:
    """Which network card takes a container."""
    free = _free(question)
    fitting = [nic for nic in question.nics if _fits(nic, free[nic.name], question)]
    chosen = _preferred(_at_hint(fitting, question.hint_numas), question.namespace_type)
    # The one with the most room where it has least, so that either direction stays open longest.
    best = min(chosen, key=lambda nic: (-min(free[nic.name].egress_mbps, free[nic.name].ingress_mbps), nic.name),
               default=None)  # fmt: skip
    return CardAnswer(nic=None if best is None else best.name, free=free)


def _free(question: CardQuestion) -> dict[str, NicFree]:
    """What each card has left; the first one carries the reservation.

    Raises:
        Refused: that leaves nothing of it.
    """
    found = {}
    for number, nic in enumerate(question.nics):
        reserved = NO_BANDWIDTH if number else question.reserved
        egress, ingress = nic.speed_mbps * EGRESS_PERCENT // 100, nic.speed_mbps * INGRESS_PERCENT // 100
        for kept, capacity in ((reserved.egress_mbps, egress), (reserved.ingress_mbps, ingress)):
            if 0 < kept >= capacity:
                why = f"{nic.name}: {kept} Mbps are reserved of {capacity}; reserve less"
                raise Refused(why, reason="reservation_too_large")
        found[nic.name] = NicFree(
            egress_mbps=max(0, egress - reserved.egress_mbps - nic.allocated.egress_mbps),
            ingress_mbps=max(0, ingress - reserved.ingress_mbps - nic.allocated.ingress_mbps),
        )
    return found


def _fits(nic: NicAsked, free: NicFree, question: CardQuestion) -> bool:
    request = question.request
    room = free.egress_mbps >= request.egress_mbps and free.ingress_mbps >= request.ingress_mbps
    # Who asks for nothing may have a card that is down.
    healthy = nic.healthy or not (request.egress_mbps or request.ingress_mbps)
    wrong = {"host": nic.netns is not None, "not_host": nic.netns is None}
    return room and healthy and not wrong.get(question.namespace_type or "", False)


def _at_hint(nics: Sequence[NicAsked], hint: Numas | None) -> Sequence[NicAsked]:
    if not hint:
        return nics
    exact = [nic for nic in nics if set(nic.numas) == set(hint)]
    return exact or [nic for nic in nics if set(nic.numas) <= set(hint)]


def _preferred(nics: Sequence[NicAsked], namespace_type: NamespaceType | None) -> Sequence[NicAsked]:
    if namespace_type not in ("host_preferred", "not_host_preferred"):
        return nics
    of_host = namespace_type == "host_preferred"
    return [nic for nic in nics if (nic.netns is None) == of_host] or nics
