"""The what-if kinds `mb_plan` and `mb_cap`: what a group may move in each CCD, and its cap over time."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from services.qrm.core.resctrl.cap import CapRules, capped, next_cap
from services.qrm.core.resctrl.flow import Flow
from services.qrm.core.resctrl.plan import GroupSeen, PlanRules, eighths, group_plan
from services.qrm.core.resctrl.schemata import schemata_line
from services.qrm.whatif.resctrl import AREA
from shared.whatif.decisions import Answer, Question, decision

Amount = Annotated[int, Field(ge=0, le=1 << 40)]
Part = Annotated[int, Field(ge=0, le=1 << 16)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Domains = Annotated[list[Amount], Field(max_length=64)]


class AskedFlow(Question):
    """Traffic of a domain's cores."""

    local_mb: Amount
    remote_mb: Amount


class CcdBounds(Question):
    """Bounds of a CCD; a most of 0 is none."""

    min_ccd_mb: Amount = 4000
    max_ccd_mb: Amount = 40_000

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if 0 < self.max_ccd_mb < self.min_ccd_mb:
            raise ValueError(f"max_ccd_mb {self.max_ccd_mb} is below min_ccd_mb {self.min_ccd_mb}")
        return self


class PlanQuestion(CcdBounds):
    """Targets by group and domain, and what was seen of them."""

    targets: dict[Name, Domains]
    outgoing: dict[Name, Annotated[list[AskedFlow], Field(max_length=64)]]
    previous: dict[Name, Domains] = {}
    cross_domain_groups: list[Name] = []
    remote_limit_mb: Amount = 15_000
    cap_percent: Annotated[int, Field(ge=0, le=1000)] = 100
    ccds: dict[Name, dict[Part, dict[Part, Amount]]]
    never_throttle: list[Name] = []

    @model_validator(mode="after")
    def _same_domains(self) -> Self:
        for group, flows in self.outgoing.items():
            if group in self.targets and len(flows) != len(self.targets[group]):
                raise ValueError(f"outgoing.{group}: {len(flows)} domains, targets has {len(self.targets[group])}")
        return self


class PlanAnswer(Answer):
    """What is set in each domain and CCD, and the line for it."""

    outgoing_targets: dict[str, list[int]]
    settings: dict[str, list[int]]
    plan: dict[str, dict[int, int]]
    schemata: dict[str, str]


@decision("mb_plan", area=AREA, asks=PlanQuestion, answers=PlanAnswer)
def mb_plan(question: PlanQuestion) -> PlanAnswer:
    """From targets of domains to lines of memory bandwidth."""
    rules = PlanRules(
        question.cross_domain_groups,
        question.remote_limit_mb,
        question.cap_percent,
        question.min_ccd_mb,
        question.max_ccd_mb,
        question.never_throttle,
    )
    found = {
        group: group_plan(group, targets, _seen(question, group), rules) for group, targets in question.targets.items()
    }
    plans = {group: dict(sorted(one.ccds.items())) for group, one in found.items() if one.ccds}
    return PlanAnswer(
        outgoing_targets={group: list(one.outgoing) for group, one in found.items()},
        settings={group: list(one.settings) for group, one in found.items()},
        plan=plans,
        # The kernel takes a line that ends so, and Katalyst writes it.
        schemata={group: f"{schemata_line('MB', eighths(plan))};" for group, plan in plans.items()},
    )


def _seen(question: PlanQuestion, group: str) -> GroupSeen:
    flows: Sequence[Flow] = [Flow(one.local_mb, one.remote_mb) for one in question.outgoing.get(group, ())]
    return GroupSeen(flows, question.previous.get(group, ()), question.ccds.get(group, {}))


class CapStep(Question):
    """Traffic of the busiest CCD, and the plan to be bounded."""

    max_observed_mb: Amount
    plan: dict[Part, Amount] = {}


class CapQuestion(CcdBounds):
    """A group's cap, and what is seen over time."""

    target_mb: Amount
    kp: Annotated[float, Field(ge=0, le=1000)] = 0.1
    start_mb: Amount | None = None
    steps: list[CapStep]


class CappedStep(Answer):
    """The cap after a step, and the plan within it."""

    cap_mb: int
    plan: dict[int, int]


class CapAnswer(Answer):
    """One answer for each step."""

    steps: list[CappedStep]


@decision("mb_cap", area=AREA, asks=CapQuestion, answers=CapAnswer)
def mb_cap(question: CapQuestion) -> CapAnswer:
    """The cap of a group on each CCD's memory bandwidth, over time."""
    rules = CapRules(question.target_mb, question.kp, question.min_ccd_mb, question.max_ccd_mb)
    cap, steps = question.max_ccd_mb if question.start_mb is None else question.start_mb, []
    for step in question.steps:
        cap = next_cap(cap, step.max_observed_mb, rules)
        steps.append(CappedStep(cap_mb=cap, plan=capped(step.plan, cap, question.min_ccd_mb)))
    return CapAnswer(steps=steps)
