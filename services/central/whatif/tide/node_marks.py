"""The what-if kind `tide_marks`: labels and taints of a node by its role."""

from services.central.core.tide.marks import (
    BATCH_UNWANTED,
    SERVICES_UNWANTED,
    SideTaints,
    TideTaint,
    marks_of,
)
from services.central.core.tide.roles import Role
from services.central.whatif.tide.pool_roles import AREA
from shared.whatif.decisions import Answer, Question, decision


class AskedTaint(Question):
    """A taint of the node."""

    key: str
    value: str | None = None
    effect: str


class AskedSideTaint(Question):
    """A pool's own taint for a side; undeclared parts have their default."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None

    def over(self, usual: TideTaint) -> TideTaint:
        """As it is in force."""
        return TideTaint(
            key=usual.key if self.key is None else self.key,
            value=usual.value if self.value is None else self.value,
            effect=usual.effect if self.effect is None else self.effect,
        )


class MarksQuestion(Question):
    """A node and its role; null: it leaves the pool."""

    role: Role | None = None
    pool: str
    labels: dict[str, str] = {}
    taints: list[AskedTaint] = []
    online_node_taint: AskedSideTaint = AskedSideTaint()
    offline_node_taint: AskedSideTaint = AskedSideTaint()


class TaintAnswer(Answer):
    """A taint that the node has."""

    key: str
    value: str
    effect: str


class MarksAnswer(Answer):
    """All labels and taints of the node, taints by key and effect."""

    labels: dict[str, str]
    taints: list[TaintAnswer]


@decision("tide_marks", area=AREA, asks=MarksQuestion, answers=MarksAnswer)
def tide_marks(question: MarksQuestion) -> MarksAnswer:
    """Labels and taints of a node of a tide pool."""
    own = SideTaints(
        online=question.online_node_taint.over(BATCH_UNWANTED),
        offline=question.offline_node_taint.over(SERVICES_UNWANTED),
    )
    taints = [TideTaint(key=one.key, value=one.value or "", effect=one.effect) for one in question.taints]
    found = marks_of(question.role, question.pool, question.labels, taints, own)
    return MarksAnswer(
        labels=dict(found.labels),
        taints=[TaintAnswer(key=one.key, value=one.value, effect=one.effect) for one in found.taints],
    )
