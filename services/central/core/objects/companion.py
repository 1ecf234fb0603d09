"""The CNR and CNC of a Node: same name and labels, owned by it.

Facts: docs/facts/katalyst-cluster.md#companions-of-a-node.
"""

from collections.abc import Mapping
from typing import Literal

from shared.core.decisions import Answer, Question, decision


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
    """What a companion looks like now."""

    labels: dict[str, str] = {}


def companion(name: str, uid: str, labels: Mapping[str, str]) -> Companion:
    """What the companion of a Node should look like, whatever is there now: labels are the Node's alone."""
    return Companion(
        name=name, labels=dict(sorted(labels.items())), ownerReferences=[OwnerReference(name=name, uid=uid)]
    )


class CompanionQuestion(Question):
    """A Node and what is there already."""

    object: Literal["CNR", "CNC"]
    node: NodeIdentity
    existing: ExistingCompanion | None = None


@decision("node_companion_object", area="central", asks=CompanionQuestion, answers=Companion)
def node_companion_object(question: CompanionQuestion) -> Companion:
    """The CNR or CNC of a Node."""
    return companion(question.node.name, question.node.uid, question.node.labels)
