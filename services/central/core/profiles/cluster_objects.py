"""What profiles need of other objects: the labels of namespaces, and priority classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.profiles.profile import PriorityClassValue
from shared.core.api_kind import ApiKind
from shared.core.text.document import integer, mapping, text, texts

NAMESPACES = ApiKind("", "v1", "Namespace", "namespaces")
PRIORITY_CLASSES = ApiKind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", status=False)
NAME_LABEL = "kubernetes.io/metadata.name"
"""The API server gives it to every namespace."""


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    """A namespace as selectors see it."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PriorityClassSeen:
    """A PriorityClass and what it gives."""

    name: str
    gives: PriorityClassValue


def namespace_of(document: Mapping[str, Any]) -> NamespaceSeen:
    """Read a Namespace.

    Raises:
        Refused: it has another shape.
    """
    meta = mapping(document.get("metadata"), "metadata")
    name = text(meta.get("name"), "metadata.name")
    return NamespaceSeen(name, {NAME_LABEL: name} | texts(meta.get("labels"), "metadata.labels"))


def priority_class_of(document: Mapping[str, Any]) -> PriorityClassSeen:
    """Read a PriorityClass.

    Raises:
        Refused: it has another shape.
    """
    name = text(mapping(document.get("metadata"), "metadata").get("name"), "metadata.name")
    policy = document.get("preemptionPolicy")
    value = integer(document.get("value"), "value")
    return PriorityClassSeen(
        name, PriorityClassValue(value, None if policy is None else text(policy, "preemptionPolicy"))
    )
