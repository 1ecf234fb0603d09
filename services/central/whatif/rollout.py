"""The what-if kind `kcc_rollout`: a whole pass over objects and nodes that somebody describes."""

from typing import ClassVar

from services.central.core.kcc.kinds import Kcc
from services.central.core.kcc.targets import KccTarget, keys_by_priority
from services.central.core.objects.cnc import NodeConfig
from services.central.core.rollout.rollout import NodeEntry, Rolled, roll_back, roll_out
from services.central.whatif.targets import NodeLabels
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision


class RolloutNode(NodeLabels):
    """A node and what its CNC points to."""

    config: NodeConfig | None = None

    def entry(self) -> NodeEntry:
        """The node as the service has it."""
        return NodeEntry(self.name, self.labels, self.config)


class RolloutQuestion(Question):
    """One kind of config, its objects, and the nodes; `kcc` null: the object that declares the kind was deleted."""

    keeps_null: ClassVar[frozenset[str]] = frozenset({"spec_config"})

    kcc: Kcc | None = None
    targets: list[KccTarget]
    nodes: list[RolloutNode]


class ConfigOfNode(Answer):
    """A config in a node's CNC."""

    name: str
    hash: str


class ValidCondition(Answer):
    """Whether a target is accepted, and why not."""

    status: str
    reason: str
    message: str


class TargetStatus(Answer):
    """Status of one target; a refused one has no counters."""

    target_nodes: int | None = None
    canary_nodes: int | None = None
    updated_target_nodes: int | None = None
    updated_nodes: int | None = None
    current_hash: str | None = None
    observed_generation: int
    condition: ValidCondition


class RolloutAnswer(Answer):
    """By node what its CNC points to (null: nothing), by target its status.

    Targets are named without their namespace if that is unambiguous.
    """

    nodes: dict[str, ConfigOfNode | None]
    target_status: dict[str, TargetStatus]


@decision("kcc_rollout", area="kcc", asks=RolloutQuestion, answers=RolloutAnswer)
def kcc_rollout(question: RolloutQuestion) -> RolloutAnswer:
    """A whole pass: targets and nodes in, CNC entries and statuses out."""
    nodes = [node.entry() for node in question.nodes]
    if question.kcc is None:
        done = roll_back(question.targets, nodes)
    else:
        done = roll_out(question.targets, keys_by_priority(question.kcc.allowed_keys), nodes)
    by_key = {target.key: target for target in question.targets}
    names = [target.name for target in by_key.values() if target.key in done.targets]
    return RolloutAnswer(
        nodes={
            node: ConfigOfNode(name=config.name, hash=config.hash) if config else None
            for node, config in done.nodes.items()
        },
        target_status={
            by_key[key].name if names.count(by_key[key].name) == 1 else key: _status(outcome, by_key[key].generation)
            for key, outcome in done.targets.items()
        },
    )


def _status(outcome: Rolled | Refused, generation: int) -> TargetStatus:
    if isinstance(outcome, Refused):
        refused = ValidCondition(status="False", reason=outcome.reason, message=str(outcome))
        return TargetStatus(observed_generation=generation, condition=refused)
    return TargetStatus(
        target_nodes=outcome.target_nodes,
        canary_nodes=outcome.canary_nodes,
        updated_target_nodes=outcome.updated_target_nodes,
        updated_nodes=outcome.updated_nodes,
        current_hash=outcome.hash,
        observed_generation=generation,
        condition=ValidCondition(status="True", reason="Normal", message=""),
    )
