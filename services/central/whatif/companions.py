"""The what-if kind `node_companion_object`: the CNR or CNC of a Node."""

from typing import Literal

from services.central.core.objects.companions import companion_metadata
from shared.whatif.decisions import Answer, Question, decision


class OwnerReference(Answer):
    """As Kubernetes writes it: with the Node its companion goes."""

    apiVersion: str = "v1"  # noqa: N815 - a field of Kubernetes
    kind: str = "Node"
    name: str
    uid: str
    controller: bool = True
    blockOwnerDeletion: bool = True  # noqa: N815 - a field of Kubernetes


class Companion(Answer):
    """Metadata of a companion object."""

    name: str
    labels: dict[str, str]
    ownerReferences: list[OwnerReference]  # noqa: N815 - a field of Kubernetes


class NodeIdentity(Question):
    """What a companion takes from its Node."""

    name: str
    uid: str
    labels: dict[str, str] = {}


class ExistingCompanion(Question):
    """The current companion."""

    labels: dict[str, str] = {}


class CompanionQuestion(Question):
    """A Node and its current companion."""

    object: Literal["CNR", "CNC"]
    node: NodeIdentity
    existing: ExistingCompanion | None = None


@decision("node_companion_object", area="central", asks=CompanionQuestion, answers=Companion)
def node_companion_object(question: CompanionQuestion) -> Companion:
    """The CNR or CNC of a Node."""
    node = question.node
    return Companion.model_validate(companion_metadata(node.name, node.uid, node.labels))
