"""Answers to the API server about pods: an AdmissionReview in, one out (docs/facts/koordinator-profiles.md#review)."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from services.central.core.admission.allowed import allowed, answer, read_request
from services.central.core.admission.json_patch import json_patch
from services.central.core.profiles.capacity_gate import with_gate
from services.central.core.profiles.cluster_objects import NAME_LABEL
from services.central.core.profiles.colocated_resources import ANNOTATION, extended_resources
from services.central.core.profiles.pod_admission import objection
from services.central.core.profiles.pod_claims import claims_of
from services.central.core.profiles.profiled_pod import ProfilesInForce, profiled
from shared.core.text.document import items, mapping
from shared.errors import Refused

MAX_REVIEW_BYTES = 8 << 20
"""The API server takes objects of 3 MiB at most, and an update sends two."""
MAX_SLO_REVIEW_BYTES = 3 << 20
"""Bound for the ConfigMap with Koordinator's strategies: two of 1 MiB, plus quoting."""
FORBIDDEN = 403
CHECK_ANNOTATION, ANSWERED = "sublet.io/webhook-check", "answered"
"""Of a pod that is created as a dry run, to see whether the API server gets an answer: it gets this value."""

Outcome = Literal["changed", "unchanged", "refused", "unreadable", "namespace_unknown"]
"""`unreadable`: the pod could not be judged, and stays as it was sent. `namespace_unknown`: at least one profile
could not be judged, and is not applied."""
Document = dict[str, Any]
BY_NAME = frozenset({NAME_LABEL})


@dataclass(frozen=True, slots=True)
class PodReview:
    """The API server's question about a pod."""

    uid: str
    operation: str
    namespace: str
    pod: Document
    old_pod: Document | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """The document that answers, what came of it, and why profiles could not be applied, by name."""

    document: Document
    outcome: Outcome
    failed: Mapping[str, str] = field(default_factory=dict)


def read_review(text: bytes) -> PodReview:
    """Parse a question of any content.

    Raises:
        Refused: too large, not JSON, or no AdmissionReview of a Pod; no answer is possible then.
    """
    asked = read_request(text, MAX_REVIEW_BYTES)
    request = asked.fields
    old = request.get("oldObject")
    return PodReview(
        uid=asked.uid,
        operation=asked.operation,
        namespace=asked.text("namespace"),
        pod=mapping(request.get("object"), "request.object"),
        old_pod=None if old is None else mapping(old, "request.oldObject"),
        dry_run=request.get("dryRun") is True,
    )


def mutate(review: PodReview, rules: ProfilesInForce, namespace_labels: Mapping[str, str]) -> ReviewAnswer:
    """Apply the profiles to a pod that is created; an unreadable pod stays unchanged."""
    if review.operation != "CREATE":
        return ReviewAnswer(allowed(review.uid), "unchanged")
    try:
        found = profiled(review.pod, namespace_labels, rules, draws(review))
        pod = _with_annotation(_with_overhead_of(review.pod, found.pod))
        pod = with_gate(pod) if rules.gated else pod
        patch = json_patch(review.pod, _checked(pod) if review.dry_run else pod)
    except Refused:
        return ReviewAnswer(allowed(review.uid), "unreadable")
    return ReviewAnswer(allowed(review.uid, patch), "changed" if patch else "unchanged", found.failed)


def mutate_by_name(review: PodReview, rules: ProfilesInForce) -> ReviewAnswer:
    """Apply the profiles without the namespace's labels: profiles that select by anything but its name are left out.

    An absent label would satisfy `DoesNotExist` and `NotIn`, so unknown labels must not count as absent ones.
    """
    told = [one for one in rules.profiles if one.namespace_selector is None or one.namespace_selector.keys <= BY_NAME]
    found = mutate(review, replace(rules, profiles=told), {NAME_LABEL: review.namespace})
    left_out = len(told) < len(rules.profiles)
    return replace(found, outcome="namespace_unknown") if left_out and found.outcome != "unreadable" else found


def validate(review: PodReview) -> ReviewAnswer:
    """Decide whether a pod is admitted; an unreadable one is.

    Faults that a pod had before an update are ignored, because the update must not be blocked: otherwise a finalizer
    could not be removed from a pod that is older than this rule.
    """
    if review.operation not in ("CREATE", "UPDATE"):
        return ReviewAnswer(allowed(review.uid), "unchanged")
    try:
        old = None if review.old_pod is None else claims_of(review.old_pod)
        found = objection(claims_of(review.pod), old)
        known = None if old is None else objection(old)
    except Refused:
        return ReviewAnswer(allowed(review.uid), "unreadable")
    if found is None or (known is not None and known.reason == found.reason):
        return ReviewAnswer(allowed(review.uid), "unchanged")
    status = {"code": FORBIDDEN, "reason": "Forbidden", "message": f"{found.reason}: {found.message}"}
    return ReviewAnswer(answer({"uid": review.uid, "allowed": False, "status": status}), "refused")


def draws(review: PodReview) -> Callable[[str], int]:
    """0 to 99 for each profile: the same whenever this pod is sent, and for all pods that one owner makes alike."""
    meta = mapping(review.pod.get("metadata"), "metadata")
    owners = items(meta.get("ownerReferences"), "ownerReferences")
    owner = next((str(mapping(one, "ownerReferences").get("uid")) for one in owners), "")
    who = [review.namespace, owner, str(meta.get("generateName") or ""), str(meta.get("name") or "")]

    def draw(profile: str) -> int:
        digest = hashlib.sha256("\0".join([*who, profile]).encode(errors="replace")).digest()
        return int.from_bytes(digest[:8], "big") % 100

    return draw


def _with_overhead_of(sent: Document, pod: Document) -> Document:
    """The pod with the overhead that it was sent with: the API server refuses any but that of its RuntimeClass."""
    overhead, spec = mapping(sent.get("spec"), "spec").get("overhead"), mapping(pod.get("spec"), "spec")
    if overhead is None or spec.get("overhead") == overhead:
        return pod
    return {**pod, "spec": {**spec, "overhead": overhead}}


def _checked(pod: Document) -> Document:
    """Return the pod with our marker, if it asks for one to test whether the webhook answers."""
    meta = mapping(pod.get("metadata"), "metadata")
    annotations = mapping(meta.get("annotations"), "annotations")
    if CHECK_ANNOTATION not in annotations:
        return pod
    return {**pod, "metadata": {**meta, "annotations": annotations | {CHECK_ANNOTATION: ANSWERED}}}


def _with_annotation(pod: Document) -> Document:
    """Return the pod with its colocated resources as an annotation; without any nothing is added."""
    spec = mapping(pod.get("spec"), "spec")
    rows = [mapping(row, "containers") for row in items(spec.get("containers"), "containers")]
    given = [(str(row.get("name")), mapping(row.get("resources"), "resources")) for row in rows]
    found = extended_resources(
        (name, mapping(resources.get("requests"), "requests"), mapping(resources.get("limits"), "limits"))
        for name, resources in given
    )
    if not found:
        return pod
    meta = mapping(pod.get("metadata"), "metadata")
    text = json.dumps({"containers": found}, separators=(",", ":"), sort_keys=True)
    return {
        **pod,
        "metadata": {**meta, "annotations": mapping(meta.get("annotations"), "annotations") | {ANNOTATION: text}},
    }
