"""A colocation profile, read and ready to be applied (docs/facts/koordinator-profiles.md#what-a-profile-does)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from services.central.core.kcc.selectors import Requirement, Selector
from shared.core.pods.koord_qos import KoordQos

SKIP_RESOURCES = "config.koordinator.sh/skip-update-resources"
"""An annotation; its value has no say."""


@dataclass(frozen=True, slots=True)
class ProfileChanges:
    """What a profile writes into a pod, in order; empty for undeclared parts."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    label_keys_mapping: Mapping[str, str] = field(default_factory=dict)
    annotation_keys_mapping: Mapping[str, str] = field(default_factory=dict)
    label_suffixes: Mapping[str, str] = field(default_factory=dict)
    scheduler_name: str = ""
    koord_qos: KoordQos | None = None
    priority_class_name: str = ""
    sub_priority: int | None = None
    patch: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile:
    """Which pods it is for, how many percent of them, and what it writes; a selector of None takes everything."""

    name: str
    changes: ProfileChanges
    namespace_selector: Selector | None = None
    selector: Selector | None = None
    probability_percent: int | None = None
    skips_resources: bool = False

    def matches(self, namespace_labels: Mapping[str, str], pod_labels: Mapping[str, str]) -> bool:
        """Whether it is for a pod with these labels in a namespace with those."""
        # The pod's own labels first: of many profiles they rule out most.
        return (self.selector is None or self.selector.matches(pod_labels)) and (
            self.namespace_selector is None or self.namespace_selector.matches(namespace_labels)
        )

    def takes(self, draw: int) -> bool:
        """Return whether a pod with this draw, 0 to 99, is within its percentage."""
        return self.probability_percent is None or draw < self.probability_percent


@dataclass(frozen=True, slots=True)
class PriorityClassValue:
    """What a PriorityClass of the cluster gives its pods."""

    value: int
    preemption_policy: str | None = None


def exact_labels(labels: Mapping[str, str]) -> Selector:
    """The selector that asks for each of these labels with this value."""
    return Selector(tuple(Requirement(key, "in", frozenset({value})) for key, value in sorted(labels.items())))
