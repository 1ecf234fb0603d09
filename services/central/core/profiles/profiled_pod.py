"""A pod as the profiles make it (docs/facts/koordinator-profiles.md#order)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.central.core.profiles.colocated_resources import kube_qos_of_spec, with_colocated
from services.central.core.profiles.profile import SKIP_RESOURCES, PriorityClassValue, Profile
from services.central.core.profiles.strategic_merge import merge_pod
from shared.core.pods.koord_qos import QOS_LABEL, SUB_PRIORITY_LABEL, priority_class_with_default
from shared.core.text.document import integer, mapping, texts
from shared.errors import Refused

Document = dict[str, Any]
PriorityClasses = Mapping[str, PriorityClassValue]

_TEXTS = ("schedulerName", "priorityClassName", "preemptionPolicy")


@dataclass(frozen=True, slots=True)
class ProfilesInForce:
    """What is applied to pods: profiles, the cluster's priority classes by name, and whether a pod may opt out."""

    profiles: Sequence[Profile]
    priority_classes: PriorityClasses = field(default_factory=dict)
    skip_by_pod_annotation: bool = False
    gated: bool = False
    """Whether pods that request reclaimed resources wait behind the gate."""


@dataclass(frozen=True, slots=True)
class ProfiledPod:
    """The pod, the profiles that were applied, and why others that it matches could not be, by name."""

    pod: Document
    applied: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


def profiled(
    pod: Mapping[str, Any],
    namespace_labels: Mapping[str, str],
    rules: ProfilesInForce,
    draw: Callable[[str], int],
) -> ProfiledPod:
    """Apply every profile that matches the pod's own labels, ascending by name; a later one overwrites.

    `draw` gives 0 to 99 for a profile's name. A profile that cannot be applied completely leaves no trace. Unchanged
    parts are not copied: the answer and the pod share them.

    Raises:
        Refused: the pod itself has another shape than a Pod.
    """
    own_labels = texts(mapping(pod.get("metadata"), "metadata").get("labels"), "labels")
    matching = sorted((p for p in rules.profiles if p.matches(namespace_labels, own_labels)), key=lambda p: p.name)
    found: Document = dict(pod)
    applied, failed = [], {}
    for profile in (p for p in matching if p.takes(draw(p.name))):
        try:
            found = _applied(found, profile, rules.priority_classes)
        except Refused as refusal:
            failed[profile.name] = str(refusal)
            continue
        applied.append(profile.name)
    if matching and not _skips_resources(found, matching, rules):
        found = _rewritten(found)
    return ProfiledPod(found, tuple(applied), failed)


def _skips_resources(pod: Mapping[str, Any], matching: Sequence[Profile], rules: ProfilesInForce) -> bool:
    by_pod = rules.skip_by_pod_annotation and SKIP_RESOURCES in _words(pod, "annotations")
    return by_pod or any(profile.skips_resources for profile in matching)


def _rewritten(pod: Document) -> Document:
    spec = mapping(pod.get("spec"), "spec")
    priority = spec.get("priority")
    known = priority if isinstance(priority, int) else None
    named = priority_class_with_default(_words(pod, "labels"), known, kube_qos_of_spec(spec))
    return {**pod, "spec": with_colocated(spec, named)} if spec else pod


def _applied(pod: Mapping[str, Any], profile: Profile, classes: PriorityClasses) -> Document:
    changes = profile.changes
    annotations = _mapped({**_words(pod, "annotations"), **changes.annotations}, changes.annotation_keys_mapping)
    words = {"labels": _labels(_words(pod, "labels"), profile), "annotations": annotations}
    changed = {
        **pod,
        "metadata": mapping(pod.get("metadata"), "metadata") | {name: said for name, said in words.items() if said},
        "spec": _spec(mapping(pod.get("spec"), "spec"), profile, classes),
    }
    return _pod(merge_pod(changed, changes.patch), changed) if changes.patch else changed


def _pod(patched: Document, before: Mapping[str, Any]) -> Document:
    """The document, if it is still a Pod: what a patch breaks is the profile's fault and not the pod's."""
    for name in ("labels", "annotations"):
        _words(patched, name)
    if patched.get("spec") is before.get("spec"):
        return patched  # what is wrong with it is the pod's own
    spec = mapping(patched.get("spec"), "spec")
    texts({name: spec[name] for name in _TEXTS if name in spec}, "spec")
    if "priority" in spec:
        integer(spec["priority"], "spec.priority")
    kube_qos_of_spec(spec)
    return patched


def _labels(labels: Mapping[str, str], profile: Profile) -> dict[str, str]:
    changes = profile.changes
    found = _mapped({**labels, **changes.labels}, changes.label_keys_mapping)
    found |= {key: found[key] + suffix for key, suffix in changes.label_suffixes.items() if key in found}
    if changes.koord_qos is not None:
        found[QOS_LABEL] = changes.koord_qos
    if changes.sub_priority is not None:
        found[SUB_PRIORITY_LABEL] = str(changes.sub_priority)
    return found


def _mapped(words: dict[str, str], keys: Mapping[str, str]) -> dict[str, str]:
    """Copy values to other keys; a missing value is copied as an empty one, as in Koordinator."""
    for source, target in sorted(keys.items()):
        words[target] = words.get(source, "")
    return words


def _spec(spec: Mapping[str, Any], profile: Profile, classes: PriorityClasses) -> Document:
    changes, found = profile.changes, dict(spec)
    if changes.scheduler_name:
        found["schedulerName"] = changes.scheduler_name
    if changes.priority_class_name:
        known = classes.get(changes.priority_class_name)
        if known is None:
            raise Refused(
                f"profile {profile.name}: priorityClassName {changes.priority_class_name!r}: the cluster has no such "
                "PriorityClass; create it, or name one that exists",
                reason="priority_class",
            )
        found |= {"priorityClassName": changes.priority_class_name, "priority": known.value}
        found.pop("preemptionPolicy", None)
        if known.preemption_policy is not None:
            found["preemptionPolicy"] = known.preemption_policy
    return found


def _words(pod: Mapping[str, Any], name: str) -> dict[str, str]:
    return dict(texts(mapping(pod.get("metadata"), "metadata").get(name), name))
