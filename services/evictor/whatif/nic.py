"""The kind `nic_pressure`: network cards that are down, and the pods on them."""

from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.nic import CardPod, is_down, stranded
from shared.whatif.decisions import Answer, Question, decision

BANDWIDTHS = ("resource.katalyst.kubewharf.io/net_bandwidth", "katalyst.kubewharf.io/net_bandwidth")


class NicShare(Question):
    """A pod that has a share of a card."""

    pod: str


class Nic(Question):
    """A network card; without bandwidth it is down."""

    name: str
    allocatable_bandwidth: Annotated[float, Field(ge=0)] | None = None
    unhealthy_for_s: float = 0.0
    allocations: list[NicShare] | None = None


class NicPod(Question):
    """A pod, what it asks for, and the card that was chosen for it."""

    name: str
    requests: dict[str, int] | None = None
    nic_selection_result: str | None = None


class NicQuestion(Question):
    """The cards and the pods."""

    enabled: bool
    tolerance_s: float = 300.0
    nics: list[Nic]
    pods: list[NicPod]


class NicAnswer(Answer):
    """Names, ascending."""

    unhealthy: list[str]
    soft_victims: list[str]


@decision("nic_pressure", area="eviction_rootfs_network", asks=NicQuestion, answers=NicAnswer)
def nic_pressure(question: NicQuestion) -> NicAnswer:
    """Which network cards are down, and whose pods should go elsewhere?"""
    down = [nic for nic in question.nics if is_down(nic.allocatable_bandwidth)]
    long = [nic for nic in down if nic.unhealthy_for_s >= question.tolerance_s] if question.enabled else []
    pods = (CardPod(pod.name, _cards(pod, long), pod.name) for pod in question.pods)
    return NicAnswer(
        unhealthy=sorted(nic.name for nic in down),
        soft_victims=[pod.of for pod in stranded(pods, {nic.name for nic in long})],
    )


def _cards(pod: NicPod, nics: list[Nic]) -> set[str]:
    """Return the cards of which the pod has a share, and the one assigned to it, if it requests bandwidth."""
    cards = {nic.name for nic in nics if any(share.pod == pod.name for share in nic.allocations or ())}
    asks = any((pod.requests or {}).get(name, 0) > 0 for name in BANDWIDTHS)
    return cards | {pod.nic_selection_result} if asks and pod.nic_selection_result is not None else cards
