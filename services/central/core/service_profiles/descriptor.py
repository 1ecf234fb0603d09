"""ServiceProfileDescriptor objects, and the Deployments and pods that they are about.

Facts: docs/facts/service-profiles.md#descriptors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from services.central.core.recommendation.objects.workloads import DEPLOYMENTS, DESCRIPTOR
from shared.core.api_kind import ApiKind
from shared.core.pydantic_words import first_fault
from shared.core.text.document import mapping
from shared.errors import Refused

DESCRIPTORS: Final = ApiKind(
    "workload.katalyst.kubewharf.io",
    "v1alpha1",
    "ServiceProfileDescriptor",
    "serviceprofiledescriptors",
    namespaced=True,
)
ENABLE: Final = "spd.katalyst.kubewharf.io/enable"
"""On a Deployment: `true` has a descriptor made for it."""
NAME: Final = DESCRIPTOR
"""On a pod: its descriptor."""
SENTINEL: Final = "spd.katalyst.kubewharf.io/baselineSentinel"
EXTENDED_SENTINEL: Final = "spd.katalyst.kubewharf.io/extendedBaselineSentinel"
MADE_LABEL: Final = "sublet.io/made-for"
"""Label of a descriptor that central has created: the UID of its Deployment. Central deletes no others."""
UPPER_BOUND: Final = "UpperBound"
MAX_INDICATORS: Final = 64
MAX_LEVELS: Final = 8
MAX_CHARACTERS: Final = 253

Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Percent = Annotated[int, Field(ge=0, le=100)]


class _Part(BaseModel):
    """Of an object that the API server has pruned by its schema."""

    model_config = ConfigDict(frozen=True, strict=True, alias_generator=to_camel, allow_inf_nan=False)


class IndicatorLevel(_Part):
    """A bound of an indicator, above which (UpperBound) the service does poorly."""

    indicator_level: Text = ""
    value: float | None = None


class NamedIndicator(_Part):
    """An indicator by which the service is judged."""

    name: Text
    indicators: Annotated[list[IndicatorLevel], Field(max_length=MAX_LEVELS)] | None = None

    @property
    def upper_bound(self) -> float | None:
        """Return the lowest of the given bounds; None without any."""
        bounds = [one.value for one in self.indicators or () if one.indicator_level == UPPER_BOUND]
        return min((value for value in bounds if value is not None), default=None)


class ExtendedIndicator(_Part):
    """An indicator with a baseline of its own; Sublet does not read its content."""

    name: Text
    baseline_percent: Percent | None = None


class DescribedTarget(_Part):
    """The workload."""

    kind: Text = ""
    name: Text = ""


class DescriptorSpec(_Part):
    """The spec, as far as anything here reads it."""

    target_ref: DescribedTarget
    baseline_percent: Percent | None = None
    business_indicator: Annotated[list[NamedIndicator], Field(max_length=MAX_INDICATORS)] | None = None
    system_indicator: Annotated[list[NamedIndicator], Field(max_length=MAX_INDICATORS)] | None = None
    extended_indicator: Annotated[list[ExtendedIndicator], Field(max_length=MAX_INDICATORS)] | None = None


@dataclass(frozen=True, slots=True)
class DescriptorSeen:
    """A descriptor, and its spec; None where that cannot be read, and why."""

    uid: str
    namespace: str
    name: str
    spec: DescriptorSpec | None
    problem: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Only our annotations."""
    made_for: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def target(self) -> str:
        """Name of the Deployment; "" if there is none."""
        return "" if self.spec is None else self.spec.target_ref.name


@dataclass(frozen=True, slots=True)
class DescribedDeployment:
    """A Deployment that wants a descriptor."""

    uid: str
    namespace: str
    name: str

    @property
    def document(self) -> dict[str, Any]:
        """Return the descriptor to create; the Deployment owns it, so Kubernetes deletes both together."""
        owner = {**DEPLOYMENTS.head, "name": self.name, "uid": self.uid, "controller": True}
        meta = {"name": self.name, "namespace": self.namespace, "labels": {MADE_LABEL: self.uid},
                "ownerReferences": [owner]}  # fmt: skip
        return {"metadata": meta, "spec": {"targetRef": {**DEPLOYMENTS.head, "name": self.name}}}


def descriptor_of(document: Mapping[str, Any]) -> DescriptorSeen | None:
    """Read an object; nothing in its spec raises. None: it is being deleted.

    Raises:
        Refused: it has no name or UID, which no API server sends.
    """
    meta = mapping(document.get("metadata"), "metadata")
    uid, namespace, name = meta.get("uid"), meta.get("namespace"), meta.get("name")
    if not (isinstance(uid, str) and uid and isinstance(namespace, str) and isinstance(name, str) and name):
        raise Refused("metadata: want uid, namespace and name of a descriptor", reason="malformed")
    if meta.get("deletionTimestamp"):
        return None
    annotations, labels = (_texts(meta.get(part)) for part in ("annotations", "labels"))
    status, problem, spec = document.get("status"), "", None
    try:
        spec = DescriptorSpec.model_validate(document.get("spec") or {})
    except ValidationError as error:
        problem = f"spec.{first_fault(error, whole='spec')}"
    if spec is not None and (spec.target_ref.kind != "Deployment" or not spec.target_ref.name):
        problem = f"spec.targetRef: {spec.target_ref.kind!r} {spec.target_ref.name!r}: want a Deployment by its name"
        spec = None
    return DescriptorSeen(
        uid=uid,
        namespace=namespace,
        name=name,
        spec=spec,
        problem=problem,
        annotations={key: annotations[key] for key in (SENTINEL, EXTENDED_SENTINEL) if key in annotations},
        made_for=labels.get(MADE_LABEL, ""),
        status=status if isinstance(status, Mapping) else {},
    )


def described_deployment_of(document: Mapping[str, Any]) -> DescribedDeployment | None:
    """Read a Deployment that wants a descriptor; None for any other.

    Raises:
        Refused: it has no metadata.
    """
    meta = mapping(document.get("metadata"), "metadata")
    uid, namespace, name = meta.get("uid"), meta.get("namespace"), meta.get("name")
    wants = _texts(meta.get("annotations")).get(ENABLE) == "true" and not meta.get("deletionTimestamp")
    if not (wants and isinstance(uid, str) and isinstance(namespace, str) and isinstance(name, str)):
        return None
    return DescribedDeployment(uid, namespace, name)


def _texts(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        return {}
    return {key: value for key, value in given.items() if isinstance(key, str) and isinstance(value, str)}
