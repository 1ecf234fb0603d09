"""The what-if kind `overcommit_match`: which config rules which node."""

from services.central.core.overcommit.match import PoolClaim, matched, ruled
from services.central.whatif.overcommit import AREA
from shared.whatif.decisions import Answer, Question, decision


class ConfigAsked(Question):
    """A NodeOvercommitConfig."""

    name: str
    selector_value: str = ""
    created_s: float


class PooledNode(Question):
    """A node and the value of its label, null without one."""

    name: str
    pool: str | None = None


class OvercommitMatchQuestion(Question):
    """Configs and nodes."""

    configs: list[ConfigAsked]
    nodes: list[PooledNode]


class OvercommitMatchAnswer(Answer):
    """By node its config; by config the nodes that it rules."""

    nodes: dict[str, str | None]
    matched: dict[str, list[str]]


@decision("overcommit_match", area=AREA, asks=OvercommitMatchQuestion, answers=OvercommitMatchAnswer)
def overcommit_match(question: OvercommitMatchQuestion) -> OvercommitMatchAnswer:
    """Which config of over-commitment rules which node."""
    claims = [PoolClaim(one.name, one.selector_value, one.created_s) for one in question.configs]
    rulers = ruled(claims, {one.name: one.pool for one in sorted(question.nodes, key=lambda one: one.name)})
    return OvercommitMatchAnswer(nodes=rulers, matched=matched(claims, rulers))
