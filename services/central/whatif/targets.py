"""The what-if kinds about config objects: which are valid, to which nodes each applies, and how many nodes get it
now."""

from typing import Annotated

from pydantic import AfterValidator, Field

from services.central.core.kcc.canary import UpdateStrategy, canary_nodes
from services.central.core.kcc.kinds import Kcc, Reason, check_kcc
from services.central.core.kcc.match import match
from services.central.core.kcc.selector_overlap import overlap
from services.central.core.kcc.selectors import parse_selector
from services.central.core.kcc.targets import AllowedKeys, KccTarget, check_target, keys_by_priority
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision


class KccAnswer(Answer):
    """Whether it is accepted; the message is empty when it is."""

    valid: bool
    reason: Reason
    message: str


class KccQuestion(Question):
    """A KCC, the others, and the kinds of config that exist; without a list every kind does."""

    kcc: Kcc
    others: list[Kcc]
    known_types: list[str] | None = None


@decision("kcc_valid", area="kcc", asks=KccQuestion, answers=KccAnswer)
def kcc_valid(question: KccQuestion) -> KccAnswer:
    """Is a KCC object accepted?"""
    found = check_kcc(question.kcc, question.others, question.known_types)
    return KccAnswer(valid=found.valid, reason=found.reason, message=found.message)


class TargetQuestion(Question):
    """A target, the labels that its KCC allows, and the other targets."""

    allowed_keys: list[AllowedKeys]
    target: KccTarget
    others: list[KccTarget]


class TargetAnswer(Answer):
    """Whether it may exist; with a message what must be changed."""

    valid: bool
    message: str | None


@decision("kcc_target_valid", area="kcc", asks=TargetQuestion, answers=TargetAnswer)
def kcc_target_valid(question: TargetQuestion) -> TargetAnswer:
    """May this target exist next to the others?"""
    try:
        check_target(question.target, keys_by_priority(question.allowed_keys), question.others)
    except Refused as refusal:
        return TargetAnswer(valid=False, message=str(refusal))
    return TargetAnswer(valid=True, message=None)


class NodeLabels(Question):
    """A node as selectors see it."""

    name: str
    labels: dict[str, str] = {}


class MatchQuestion(Question):
    """A node and the targets there are, valid or not."""

    node: NodeLabels
    targets: list[KccTarget]


class MatchAnswer(Answer):
    """Names of the targets on the highest level that matches, and the one that the node gets."""

    matched: list[str]
    selected: str | None = None
    error: str | None = None
    message: str | None = None


@decision("kcc_match", area="kcc", asks=MatchQuestion, answers=MatchAnswer)
def kcc_match(question: MatchQuestion) -> MatchAnswer:
    """Which config object a node gets."""
    found = match(question.node.name, question.node.labels, question.targets)
    names = [target.name for target in found.matched]
    try:
        return MatchAnswer(matched=names, selected=found.selected().name)
    except Refused as refusal:
        return MatchAnswer(matched=names, error=refusal.reason, message=str(refusal))


def _readable(text: str) -> str:
    try:
        parse_selector(text)
    except Refused as refusal:
        raise ValueError(str(refusal)) from refusal
    return text


SelectorText = Annotated[str, AfterValidator(_readable)]


class SelectorOverlapQuestion(Question, title="OverlapQuestion"):
    """Two selectors and the labels that may tell them apart."""

    selector: SelectorText
    other: SelectorText
    keys: list[str]


class SelectorOverlapAnswer(Answer, title="OverlapAnswer"):
    """Whether they overlap."""

    overlap: bool


@decision("selectors_overlap", area="kcc", asks=SelectorOverlapQuestion, answers=SelectorOverlapAnswer)
def selectors_overlap(question: SelectorOverlapQuestion) -> SelectorOverlapAnswer:
    """Can one node satisfy both selectors?"""
    return SelectorOverlapAnswer(
        overlap=overlap(parse_selector(question.selector), parse_selector(question.other), question.keys)
    )


class CanaryQuestion(Question):
    """How a config is rolled out, and over how many nodes."""

    update_strategy: UpdateStrategy | None = None
    matched_nodes: Annotated[int, Field(ge=0)]
    paused: bool = False


class CanaryAnswer(Answer):
    """How many nodes get the new config now."""

    canary_nodes: int
    error: str | None = None
    message: str | None = None


@decision("canary_cutoff", area="kcc", asks=CanaryQuestion, answers=CanaryAnswer)
def canary_cutoff(question: CanaryQuestion) -> CanaryAnswer:
    """How many of the matched nodes get the new config now."""
    return CanaryAnswer(
        canary_nodes=canary_nodes(question.update_strategy, question.matched_nodes, paused=question.paused)
    )
