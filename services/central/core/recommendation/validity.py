"""Whether a ResourceRecommend can be followed (docs/facts/katalyst-recommendation.md#resourcerecommend)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from services.central.core.recommendation.request import BUFFER_PERCENT, MOST_BUFFER_PERCENT

EVERY_OTHER = "*"
"""Name of the policy of all containers that are not named."""
SUPPORTED_KINDS = ("Deployment",)
ALGORITHMS = ("", "percentile")
RESOURCES = ("cpu", "memory")
CONTROLLED_VALUES = ("", "RequestsOnly")

Code = Literal[
    "ok",
    "WorkloadNameIsEmpty",
    "WorkloadsUnsupported",
    "AlgorithmUnsupported",
    "ContainerPoliciesNotFound",
    "WorkloadNotFound",
    "ContainerDuplicate",
    "ContainerNameEmpty",
    "ContainersNotFound",
    "ControlledResourcesPoliciesEmpty",
    "ResourceNameUnsupported",
    "ControlledValuesUnsupported",
    "ResourceBuffersUnsupported",
]


@dataclass(frozen=True, slots=True)
class ResourcePolicy:
    """What to recommend for a container."""

    resource: str
    buffer_percent: int = BUFFER_PERCENT
    controlled_values: str = ""
    min_allowed: int | None = None
    max_allowed: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerPolicy:
    """What is wanted for a container, or for all others."""

    container: str
    resources: Sequence[ResourcePolicy]


@dataclass(frozen=True, slots=True)
class WantedRecommendation:
    """The content of a ResourceRecommend's spec."""

    kind: str
    name: str
    algorithm: str
    policies: Sequence[ContainerPolicy]


@dataclass(frozen=True, slots=True)
class Validity:
    """`ok` and the policies of each container by name, or the first thing that is wrong, and where."""

    code: Code
    containers: Mapping[str, Sequence[ResourcePolicy]]
    said: str = ""

    @property
    def ok(self) -> bool:
        """Whether it can be followed."""
        return self.code == "ok"


def validity(
    wanted: WantedRecommendation,
    workload_containers: Collection[str] | None,
    kinds: Collection[str] = SUPPORTED_KINDS,
) -> Validity:
    """Check what a ResourceRecommend requests; `workload_containers` is None if there is no such workload."""
    wrong = next(_wrong_target(wanted, kinds), None)
    if wrong is not None:
        return wrong
    if workload_containers is None:
        return _refused("WorkloadNotFound", f"{wanted.kind} {wanted.name!r}: there is none in this namespace")
    wrong = next(_wrong_containers(wanted.policies, workload_containers), None)
    if wrong is not None:
        return wrong
    by_name = {policy.container: policy.resources for policy in wanted.policies}
    found = {
        name: by_name.get(name, by_name.get(EVERY_OTHER, ()))
        for name in sorted(workload_containers)
        if name in by_name or EVERY_OTHER in by_name
    }
    return next(_wrong_resources(found), Validity("ok", found))


def _refused(code: Code, said: str) -> Validity:
    return Validity(code, {}, said)


def _wrong_target(wanted: WantedRecommendation, kinds: Collection[str]) -> Iterator[Validity]:
    if not wanted.name:
        yield _refused("WorkloadNameIsEmpty", "spec.targetRef.name is empty: name the workload")
    if wanted.kind not in kinds:
        yield _refused("WorkloadsUnsupported", f"spec.targetRef.kind {wanted.kind!r}: want {' or '.join(kinds)}")
    if wanted.algorithm not in ALGORITHMS:
        yield _refused("AlgorithmUnsupported", f"algorithm {wanted.algorithm!r}: want percentile, or leave it out")
    if not wanted.policies:
        yield _refused("ContainerPoliciesNotFound", 'containerPolicies is empty: name containers, or "*" for all')


def _wrong_containers(policies: Sequence[ContainerPolicy], there: Collection[str]) -> Iterator[Validity]:
    seen: set[str] = set()
    for policy in policies:
        where = f"container {policy.container!r}"
        if policy.container in seen:
            yield _refused("ContainerDuplicate", f"{where} has two policies: keep one")
        if not policy.container:
            yield _refused("ContainerNameEmpty", 'a policy names no container: name one, or "*" for all others')
        if policy.container != EVERY_OTHER and policy.container not in there:
            yield _refused("ContainersNotFound", f"{where}: the workload has {', '.join(sorted(there)) or 'none'}")
        if not policy.resources:
            yield _refused("ControlledResourcesPoliciesEmpty", f"{where}: name cpu or memory in its policies")
        seen.add(policy.container)


def _wrong_resources(containers: Mapping[str, Sequence[ResourcePolicy]]) -> Iterator[Validity]:
    for name, resources in containers.items():
        for policy in resources:
            where = f"container {name!r}, resource {policy.resource!r}"
            if policy.resource not in RESOURCES:
                yield _refused("ResourceNameUnsupported", f"{where}: want cpu or memory")
            if policy.controlled_values not in CONTROLLED_VALUES:
                said = f"{where}: controlledValues {policy.controlled_values!r}: want RequestsOnly"
                yield _refused("ControlledValuesUnsupported", said)
            if not 0 <= policy.buffer_percent <= MOST_BUFFER_PERCENT:
                said = f"{where}: bufferPercent {policy.buffer_percent}: want 0 to {MOST_BUFFER_PERCENT}"
                yield _refused("ResourceBuffersUnsupported", said)
