"""KatalystVerticalPodAutoscaler objects (docs/facts/service-profiles.md#vpa), and the common part of every
autoscaler.

An object that is unreadable, or asks for something impossible, changes no pod, and its status says why.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from services.central.core.recommendation.vpa_target import (
    COMPUTE,
    ControlledValues,
    PodMatching,
    ResizePolicy,
    Strategy,
    check_strategy,
)
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.core.api_kind import ApiKind
from shared.core.pydantic_words import first_fault
from shared.core.text.document import mapping
from shared.errors import Refused

KATALYST_VPAS: Final = ApiKind(
    "autoscaling.katalyst.kubewharf.io",
    "v1alpha1",
    "KatalystVerticalPodAutoscaler",
    "katalystverticalpodautoscalers",
    namespaced=True,
)
MAX_POLICIES: Final = 64
MAX_RESOURCES: Final = 16
MAX_CHARACTERS: Final = 253
MAX_AMOUNT: Final = 1 << 60

Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
QuantityText = int | Annotated[str, Field(max_length=64)]
QuantityTexts = Annotated[dict[Text, QuantityText], Field(max_length=MAX_RESOURCES)]


class VpaPart(BaseModel):
    """Of an object that the API server has pruned by its schema."""

    model_config = ConfigDict(frozen=True, strict=True, alias_generator=to_camel, allow_inf_nan=False)


S = TypeVar("S", bound=VpaPart)
"""A spec."""


class VpaTargetRef(VpaPart):
    """The workload."""

    kind: Text = ""
    name: Text = ""


class UpdatePolicy(VpaPart):
    """How pods are changed, and which."""

    pod_updating_strategy: Strategy = "Off"
    pod_matching_strategy: PodMatching = "All"


class VpaContainerPolicy(VpaPart):
    """What of a container may change, and within which figures."""

    container_name: Text = ""
    controlled_resources: Annotated[list[Text], Field(max_length=MAX_RESOURCES)] = ["cpu"]
    controlled_values: ControlledValues = "RequestsAndLimits"
    min_allowed: QuantityTexts | None = None
    max_allowed: QuantityTexts | None = None


class VpaResourcePolicy(VpaPart):
    """The policies of all containers."""

    container_policies: Annotated[list[VpaContainerPolicy], Field(max_length=MAX_POLICIES)] | None = None


class KatalystVpaSpec(VpaPart):
    """The spec, field by field."""

    target_ref: VpaTargetRef
    update_policy: UpdatePolicy = UpdatePolicy()
    resource_policy: VpaResourcePolicy = VpaResourcePolicy()


@dataclass(frozen=True, slots=True)
class VpaWanted:
    """What an autoscaler wants for its Deployment."""

    target: str
    strategy: Strategy
    matching: PodMatching
    policies: Mapping[str, ResizePolicy]


@dataclass(frozen=True, slots=True)
class VpaSeen:
    """An object, and what it wants; None where that cannot be done, and why."""

    uid: str
    namespace: str
    name: str
    generation: int
    created_s: float
    wanted: VpaWanted | None
    reason: str = ""
    problem: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)
    kind: ApiKind = KATALYST_VPAS
    own: Mapping[str, Mapping[str, int]] | None = None
    """Of a stock object its own recommendation, by container; None: a ResourceRecommend's."""
    said: str = ""
    """The last report in a stock object's annotation."""

    @property
    def key(self) -> str:
        """Namespace and name, and of a stock object its kind."""
        path = f"{self.namespace}/{self.name}"
        return path if self.kind is KATALYST_VPAS else f"{self.kind.plural}/{path}"


def katalyst_vpa_of(document: Mapping[str, Any]) -> VpaSeen | None:
    """Read an object; nothing in its spec raises. None: it is being deleted.

    Raises:
        Refused: it has no name or UID, which no API server sends.
    """
    return seen_vpa(document, KATALYST_VPAS, _wanted)


def seen_vpa(document: Mapping[str, Any], kind: ApiKind, read: Callable[[object], VpaWanted]) -> VpaSeen | None:
    """Read an object of a kind, whose spec is parsed by `read`; None: it is being deleted.

    Raises:
        Refused: it has no name or UID.
    """
    meta = mapping(document.get("metadata"), "metadata")
    uid, namespace, name = meta.get("uid"), meta.get("namespace"), meta.get("name")
    if not (isinstance(uid, str) and uid and isinstance(namespace, str) and isinstance(name, str) and name):
        raise Refused("metadata: want uid, namespace and name of an autoscaler", reason="malformed")
    if meta.get("deletionTimestamp"):
        return None
    generation, status = meta.get("generation"), document.get("status")
    wanted, reason, problem = None, "", ""
    try:
        wanted = read(document.get("spec"))
    except Refused as refusal:
        reason, problem = refusal.reason, str(refusal)
    return VpaSeen(
        uid=uid,
        namespace=namespace,
        name=name,
        generation=generation if isinstance(generation, int) else 0,
        created_s=created_s(meta.get("creationTimestamp")),
        wanted=wanted,
        reason=reason,
        problem=problem,
        status=status if isinstance(status, Mapping) else {},
        kind=kind,
    )


def created_s(given: object) -> float:
    """The moment of a creation; 0, before everything, where it cannot be read."""
    try:
        return datetime.fromisoformat(given).timestamp() if isinstance(given, str) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _wanted(given: object) -> VpaWanted:
    spec = read_spec(KatalystVpaSpec, given)
    policies = policies_of(spec.target_ref, spec.resource_policy.container_policies or ())
    try:
        check_strategy(spec.update_policy.pod_updating_strategy)
    except Refused as refusal:
        raise Refused(str(refusal), reason="StrategyUnsupported") from refusal
    update = spec.update_policy
    return VpaWanted(spec.target_ref.name, update.pod_updating_strategy, update.pod_matching_strategy, policies)


def read_spec(model: type[S], given: object) -> S:
    """The spec that a document describes.

    Raises:
        Refused: `Unreadable`, with the field.
    """
    try:
        return model.model_validate(given or {})
    except ValidationError as error:
        raise Refused(f"spec.{first_fault(error, whole='spec')}", reason="Unreadable") from error


def policies_of(target: VpaTargetRef, rows: Sequence[VpaContainerPolicy]) -> dict[str, ResizePolicy]:
    """Return the policies of a target by container.

    Raises:
        Refused: the target or a policy asks for something impossible; the reason says what.
    """
    if target.kind != "Deployment" or not target.name:
        said = f"spec.targetRef: {target.kind!r} {target.name!r}: want a Deployment by its name"
        raise Refused(said, reason="TargetUnsupported")
    found: dict[str, ResizePolicy] = {}
    for one in rows:
        if not one.container_name or one.container_name in found:
            said = f"containerPolicies: {one.container_name!r}: want each container, or '*', once"
            raise Refused(said, reason="PolicyInvalid")
        found[one.container_name] = _policy(one)
    return found


def _policy(one: VpaContainerPolicy) -> ResizePolicy:
    others = sorted({*one.controlled_resources, *(one.min_allowed or ()), *(one.max_allowed or ())} - {*COMPUTE})
    if others:
        said = f"containerPolicies {one.container_name!r}: {others[0]!r}: only cpu and memory can be controlled"
        raise Refused(said, reason="ResourceUnsupported")
    least, most = _amounts(one, one.min_allowed), _amounts(one, one.max_allowed)
    for name, amount in least.items():
        if amount > most.get(name, amount):
            said = f"containerPolicies {one.container_name!r}: minAllowed of {name} is above its maxAllowed"
            raise Refused(said, reason="BoundsInvalid")
    return ResizePolicy(one.controlled_values, tuple(one.controlled_resources), least, most)


def _amounts(one: VpaContainerPolicy, given: Mapping[str, QuantityText] | None) -> dict[str, int]:
    found = {}
    for name, value in (given or {}).items():
        try:
            amount = parse_millis(value) if name == "cpu" else parse_units(value)
        except ValueError as error:
            raise Refused(f"containerPolicies {one.container_name!r}: {name}: {error}", reason="Unreadable") from error
        if not 0 <= amount <= MAX_AMOUNT:
            said = f"containerPolicies {one.container_name!r}: {name} {value!r}: want 0 or more, less than 2^60"
            raise Refused(said, reason="BoundsInvalid")
        found[name] = amount
    return found
