"""Where applications outside of pods run, and whether what is measured there belongs to them alone. Pure.

An application counts in addition to pods, so its cgroup must contain no pod and no other application. Otherwise their
use would count twice, and the system's use would be too small.

Facts: docs/facts/koordinator-host-applications.md#cgroups,
docs/facts/koordinator-host-applications.md#what-their-use-counts-for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from services.metrics.core.figures.results import TargetResult
from services.metrics.core.figures.target import Target
from shared.contracts.pod import KubeQos, Pod
from shared.contracts.sample import ApplicationReading
from shared.core.cgroups.group_path import group_parts, holds
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import POOL_OF_QOS, RECLAIM, Layout, above
from shared.core.pods.koord_qos import KoordQos, PriorityClass
from shared.errors import Refused

CgroupBase = Literal["CgroupRoot", "Kubepods", "KubepodsBurstable", "KubepodsBesteffort"]
"""Below what the path of an application's cgroup begins, in Koordinator's words."""
_HOMES: Mapping[CgroupBase, KubeQos] = {
    "Kubepods": "Guaranteed",
    "KubepodsBurstable": "Burstable",
    "KubepodsBesteffort": "BestEffort",
}


APPLICATION_NAME = r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
MOST_PATH_CHARACTERS = 256


def _group_path(path: str) -> str:
    try:
        return "/".join(group_parts(path))
    except Refused as refusal:
        raise ValueError(f"{refusal}; want names of cgroups with / between them, without . and ..") from None


class MeasuredApplication(BaseModel):
    """An application outside of pods, as the settings name it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=APPLICATION_NAME)]
    path: Annotated[str, Field(min_length=1, max_length=MOST_PATH_CHARACTERS), AfterValidator(_group_path)]
    """Its cgroup, below `base`."""
    base: CgroupBase = "CgroupRoot"
    qos: KoordQos | None = None
    priority: PriorityClass | None = None


@dataclass(frozen=True, slots=True)
class PlacedApplications:
    """The cgroup of each application that may be measured, and why others may not."""

    targets: tuple[Target, ...] = ()
    pools: Mapping[str, str] = field(default_factory=dict)
    """By name the pool in whose own cgroup an application runs: it is counted there already."""
    refused: Mapping[str, str] = field(default_factory=dict)


def place(applications: Sequence[MeasuredApplication], layout: Layout, pods: Sequence[Pod]) -> PlacedApplications:
    """Return the applications' cgroups, given the cgroups of the present pods."""
    targets, pools, refused = list[Target](), dict[str, str](), dict[str, str]()
    of_pods = frozenset(layout.pod_group(pod) for pod in pods) if applications else frozenset()
    for one in applications:
        group = _group(one, layout)
        why = _no_kubelet(one) if group is None else _not_alone(group, layout, of_pods, targets)
        if group is None or why:
            refused[one.name] = why
            continue
        targets.append(Target("application", one.name, group))
        if (pool := next((name for name, home in _pool_groups(layout, pods) if holds(home, group)), "")) != "":
            pools[one.name] = pool
    return PlacedApplications(tuple(targets), pools, refused)


def application_readings(
    applications: Sequence[MeasuredApplication],
    placed: PlacedApplications,
    results: Mapping[Target, TargetResult],
    unread: Mapping[str, str],
) -> tuple[ApplicationReading, ...]:
    """Return the reading of each application; `unread` says by name why a permitted cgroup could not be measured."""
    measured = {target.name: one.model for target, one in results.items() if isinstance(one.model, ApplicationReading)}
    return tuple(
        measured.get(one.name, ApplicationReading(name=one.name)).model_copy(
            update={
                "qos": one.qos,
                "priority": one.priority,
                "pool": placed.pools.get(one.name, ""),
                "unmeasured": placed.refused.get(one.name) or unread.get(one.name, ""),
            }
        )
        for one in applications
    )


def _group(one: MeasuredApplication, layout: Layout) -> str | None:
    """Return the application's group; None if it is named by a group of kubelet's, and there is no kubelet."""
    if one.base == "CgroupRoot":
        return one.path
    if not isinstance(layout, KubeletLayout):
        return None
    return f"{layout.home(_HOMES[one.base])}/{one.path}".rstrip("/")


def _no_kubelet(one: MeasuredApplication) -> str:
    return f"base {one.base}: no kubelet runs here; name the path with base CgroupRoot"


def _not_alone(group: str, layout: Layout, of_pods: frozenset[str], placed: Sequence[Target]) -> str:
    """Why a cgroup is not an application's own; "" where it is."""
    if holds(group, layout.top) or any(holds(group, home) for home in layout.homes):
        return f"cgroup {group or '/'} holds pods; name one that holds the application alone"
    if not of_pods.isdisjoint((group, *above(group))):
        return f"cgroup {group} is a pod's, which counts as a pod; take it out"
    other = next((one for one in placed if holds(one.group, group) or holds(group, one.group)), None)
    return f"cgroup {group} is counted with {other.name} already; take one of both out" if other else ""


def _pool_groups(layout: Layout, pods: Sequence[Pod]) -> Iterator[tuple[str, str]]:
    """Pools with the cgroups that they are measured by."""
    yield from ((POOL_OF_QOS[qos], group) for qos, group in layout.classes.items())
    if not layout.classes and (reclaimed := layout.reclaimed_group(pods)) is not None:
        yield RECLAIM, reclaimed
