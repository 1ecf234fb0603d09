"""`ShapeChoice` decides between separate and shared CPUs where `advisor.shape: auto` leaves it to the node.

CPUs are shared only once everything that speaks for it is known: the policy declares it, qrm says that the kernel has
an idle class, and the policy has decided a round with tenants from what it learned. Until then each side has CPUs of
its own, which is careful, and shows a first walk through the quick start the sizes of Katalyst's tutorial. Each fact is
learned once in the advisor's life, so that the shape changes once, and changes back only where qrm finds that the
kernel refuses.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from services.advisor.core.model.machine import ShapeName
from services.advisor.core.model.view import View
from services.advisor.core.policy import Policy
from services.advisor.core.round.decide import Round
from shared.contracts.envelope import Reason

ShapeSetting = Literal["auto", ShapeName]


@dataclass(frozen=True, slots=True)
class ShapeEvidence:
    """What speaks for shared CPUs on this node, learned since the advisor's start."""

    idle_class: bool | None = None
    """Whether the kernel has an idle class, as qrm says; None: qrm has not said."""
    knows_tenants: bool = False
    """Whether the policy has decided a round with tenants, neither canonical for it nor the common reserve, or
    said that what it knows of them speaks for sharing (`Demand.may_share`)."""

    def with_idle_class(self, idle_class: bool | None) -> "ShapeEvidence":
        """With what an allocation says. A refusal stays until the next start: the shape must not go to and fro."""
        if idle_class is None or self.idle_class in (idle_class, False):
            return self
        return replace(self, idle_class=idle_class)

    def with_round(self, done: Round, view: View, policy: Policy[Any, Any]) -> "ShapeEvidence":
        """With what a round of the chosen policy says of its knowledge."""
        if self.knows_tenants or not view.fresh or done.policy != policy.name:
            return self
        if done.demand.common and not done.demand.may_share:
            return self
        # An empty node says nothing of the tenants to come.
        return replace(self, knows_tenants=True) if view.of("shared_cores") else self


NOTHING_KNOWN = ShapeEvidence()


@dataclass(frozen=True, slots=True)
class ShapeChoice:
    """The shape of a node, and why it has it."""

    shape: ShapeName
    why: str

    @classmethod
    def of(cls, setting: ShapeSetting, policy: Policy[Any, Any], evidence: ShapeEvidence) -> "ShapeChoice":
        """Return the shape that follows from the setting, the policy's declaration and the evidence."""
        if setting != "auto":
            return cls(setting, "advisor.shape says so")
        if policy.shape == "partitioned":
            return cls("partitioned", f"the policy {policy.name} declares it")
        if evidence.idle_class is None:
            return cls("partitioned", "qrm has not said whether the kernel has an idle class")
        if not evidence.idle_class:
            return cls("partitioned", "the kernel has no idle class (cpu.idle, Linux 5.15)")
        if not evidence.knows_tenants:
            return cls("partitioned", f"the policy {policy.name} does not know the tenants yet")
        return cls("shared", "the kernel has an idle class, and the policy knows the tenants")

    @property
    def reason(self) -> Reason:
        """The choice as a reason of the advice."""
        return Reason(rule=f"shape {self.shape}: {self.why}")
