"""ResourceRecommend objects (docs/facts/katalyst-recommendation.md#resourcerecommend).

An unreadable one recommends nothing, and its status says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from services.central.core.recommendation.request import BUFFER_PERCENT
from services.central.core.recommendation.validity import ContainerPolicy, ResourcePolicy, WantedRecommendation
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.core.api_kind import ApiKind
from shared.core.pydantic_words import first_fault
from shared.core.text.document import mapping
from shared.errors import Refused

RESOURCE_RECOMMENDS = ApiKind(
    "recommendation.katalyst.kubewharf.io", "v1alpha1", "ResourceRecommend", "resourcerecommends", namespaced=True
)
APPLY = "recommendation.sublet.io/apply"
"""Annotation of the object: what happens with the figures besides the status. It is an annotation because the spec
is upstream's, and an API server with upstream's schema drops unknown fields."""
IN_PLACE, OFF = "InPlace", "Off"
OURS = ("", "default")
"""Names of recommenders that mean Sublet."""
MAX_POLICIES, MAX_RESOURCES, MAX_CHARACTERS = 64, 16, 253
MAX_AMOUNT = 1 << 60

Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Quantity = int | Annotated[str, Field(max_length=64)]


class _Part(BaseModel):
    """Of an object that the API server has pruned by its schema."""

    model_config = ConfigDict(frozen=True, strict=True, alias_generator=to_camel, allow_inf_nan=False)


class ControlledResource(_Part):
    """What is wanted for one resource of a container."""

    resource_name: Text = ""
    buffer_percent: int | None = None
    controlled_values: Text | None = None
    min_allowed: Quantity | None = None
    max_allowed: Quantity | None = None

    @property
    def policy(self) -> ResourcePolicy:
        """As the rules have it.

        Raises:
            Refused: a bound is no quantity.
        """
        return ResourcePolicy(
            resource=self.resource_name,
            buffer_percent=BUFFER_PERCENT if self.buffer_percent is None else self.buffer_percent,
            controlled_values=self.controlled_values or "",
            min_allowed=_amount(self.resource_name, self.min_allowed, "minAllowed"),
            max_allowed=_amount(self.resource_name, self.max_allowed, "maxAllowed"),
        )


class RecommendedContainer(_Part):
    """What is wanted for one container."""

    container_name: Text = ""
    controlled_resources_policies: Annotated[list[ControlledResource], Field(max_length=MAX_RESOURCES)] | None = None


class AlgorithmChoice(_Part):
    """How to compute, and who."""

    algorithm: Text | None = None
    recommender: Text | None = None


class RecommendPolicy(_Part):
    """What to compute for which container."""

    algorithm_policy: AlgorithmChoice | None = None
    container_policies: Annotated[list[RecommendedContainer], Field(max_length=MAX_POLICIES)] | None = None


class RecommendTarget(_Part):
    """The workload."""

    kind: Text = ""
    name: Text = ""


class RecommendSpec(_Part):
    """The spec, field by field."""

    target_ref: RecommendTarget = RecommendTarget()
    resource_policy: RecommendPolicy = RecommendPolicy()

    @property
    def wanted(self) -> WantedRecommendation:
        """As the rules have it.

        Raises:
            Refused: a bound is no quantity.
        """
        chosen = self.resource_policy.algorithm_policy or AlgorithmChoice()
        policies = [
            ContainerPolicy(one.container_name, [part.policy for part in one.controlled_resources_policies or ()])
            for one in self.resource_policy.container_policies or ()
        ]
        return WantedRecommendation(self.target_ref.kind, self.target_ref.name, chosen.algorithm or "", policies)


@dataclass(frozen=True, slots=True)
class RecommendSeen:
    """An object, and what it wants; None where it cannot be read, and why."""

    uid: str
    namespace: str
    name: str
    generation: int
    wanted: WantedRecommendation | None
    problem: str = ""
    apply: str = OFF
    """Off, InPlace, or an unknown value."""
    foreign: str = ""
    """The recommender that it names, if it is not ours: then nothing is written."""
    status: Mapping[str, Any] | None = None
    """The current status."""

    @property
    def path(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


def recommend_of(document: Mapping[str, Any]) -> RecommendSeen | None:
    """Read an object; nothing in its spec raises. None: it is being deleted.

    Raises:
        Refused: it has no name or UID, which no API server sends.
    """
    meta = mapping(document.get("metadata"), "metadata")
    uid, namespace, name = meta.get("uid"), meta.get("namespace"), meta.get("name")
    if not (isinstance(uid, str) and uid and isinstance(namespace, str) and isinstance(name, str) and name):
        raise Refused("metadata: want uid, namespace and name of a ResourceRecommend", reason="malformed")
    if meta.get("deletionTimestamp"):
        return None
    generation, annotations = meta.get("generation"), meta.get("annotations")
    apply = annotations.get(APPLY, OFF) if isinstance(annotations, Mapping) else OFF
    status = document.get("status")
    wanted, foreign, problem = _wanted(document.get("spec"))
    return RecommendSeen(
        uid=uid,
        namespace=namespace,
        name=name,
        generation=generation if isinstance(generation, int) else 0,
        wanted=wanted,
        problem=problem,
        apply=str(apply)[:MAX_CHARACTERS],
        foreign=foreign,
        status=status if isinstance(status, Mapping) else None,
    )


def _wanted(given: object) -> tuple[WantedRecommendation | None, str, str]:
    """Return what is wanted, the recommender if it is not ours, and what cannot be read."""
    try:
        spec = RecommendSpec.model_validate(given or {})
        named = (spec.resource_policy.algorithm_policy or AlgorithmChoice()).recommender or ""
        return spec.wanted, "" if named in OURS else named, ""
    except ValidationError as error:
        return None, "", f"spec.{first_fault(error, whole='spec')}"
    except Refused as refusal:
        return None, "", str(refusal)


def _amount(resource: str, given: Quantity | None, field: str) -> int | None:
    if given is None:
        return None
    try:
        amount = parse_millis(given) if resource == "cpu" else parse_units(given)
    except ValueError as error:
        raise Refused(f"{field} of {resource}: {error}", reason="malformed") from error
    if not 0 <= amount <= MAX_AMOUNT:
        raise Refused(f"{field} of {resource} {given!r}: want 0 or more, less than 2^60", reason="malformed")
    return amount
