"""Pods on a network card that is down (docs/facts/katalyst-eviction.md#network-card)."""

from collections.abc import Collection, Iterable
from typing import Annotated, TypeVar

from pydantic import Field

from shared.core.decisions import Answer, Question, decision

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

    @property
    def healthy(self) -> bool:
        """Whether it has bandwidth to give."""
        return bool(self.allocatable_bandwidth)


class NicPod(Question):
    """A pod, what it asks for, and the card that was chosen for it."""

    name: str
    requests: dict[str, int] | None = None
    nic_selection_result: str | None = None

    @property
    def order(self) -> str:
        """The last word of every ordering."""
        return self.name

    @property
    def wants_bandwidth(self) -> bool:
        """Whether it asks for bandwidth of its card."""
        return any((self.requests or {}).get(name, 0) > 0 for name in BANDWIDTHS)


P = TypeVar("P", bound=NicPod)


def unhealthy(nics: Iterable[Nic]) -> list[Nic]:
    """Cards that are down, by name."""
    return sorted((nic for nic in nics if not nic.healthy), key=lambda nic: nic.name)


def stranded(pods: Iterable[P], down: Collection[Nic]) -> list[P]:
    """Pods with a share of such a card, or that were given it and ask for bandwidth, by name."""
    cards = {nic.name for nic in down}
    sharing = {share.pod for nic in down for share in nic.allocations or ()}
    found = [p for p in pods if p.name in sharing or (p.nic_selection_result in cards and p.wants_bandwidth)]
    return sorted(found, key=lambda pod: pod.order)


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
    down = unhealthy(question.nics)
    long = [nic for nic in down if nic.unhealthy_for_s >= question.tolerance_s] if question.enabled else []
    return NicAnswer(
        unhealthy=[nic.name for nic in down], soft_victims=[pod.name for pod in stranded(question.pods, long)]
    )
