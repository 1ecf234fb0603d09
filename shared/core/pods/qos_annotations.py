"""`pod_qos` reads all that a pod's annotations say about its QoS (docs/facts/katalyst-cluster.md#qos-annotations).

Nothing here fails as a whole: a value that cannot be used gets a code in `errors`, and everything else is still read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar, get_args

from shared.contracts.pod import QosClass
from shared.core.pods.qos import DOMAIN, qos_class
from shared.core.text.annotation_values import amount, ids, integer, json_object, refuse
from shared.errors import Refused

BurstPolicy = Literal["default", "closed", "static", "dynamic"]

NUMA_IDS, NUMA_NUMBER = f"{DOMAIN}numa_ids", f"{DOMAIN}numa_number"
NUMA_BIND_RESULT, NET_CLASS_ID = f"{DOMAIN}numa_bind_result", f"{DOMAIN}net_class_id"

OOM_BASE: dict[QosClass, int] = {
    "reclaimed_cores": -100,
    "shared_cores": 0,
    "dedicated_cores": 100,
    "system_cores": 200,
}
OOM_SPAN = 99
OOM_LAST = 300
"""A wish of exactly this stands as it is: the last one the kernel may kill."""
_FULL_BURST_PERCENT = 100.0
_MAX_NET_CLASS_ID = 2**32 - 1

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClusterDialect:
    """What this cluster adds to the standard keys: annotations that stand for a class, keys for an enhancement."""

    selectors: Mapping[QosClass, Mapping[str, str]] = field(default_factory=dict)
    enhancement_keys: Mapping[str, str] = field(default_factory=dict)


KATALYST = ClusterDialect()
"""The standard keys alone."""


@dataclass(frozen=True, slots=True)
class PodQos:
    """What the annotations say; None, empty or 0 where they say nothing usable."""

    qos_level: QosClass | None
    enhancements: dict[str, str]
    numa_binding: bool
    numa_exclusive: bool
    cpuset_pool: str | None
    cpu_burst_policy: BurstPolicy | None
    cpu_burst_percent: float | None
    numa_ids: list[int]
    numa_number: int
    numa_bind_result: int | None
    suppression_tolerance_ratio: float | None
    rss_overuse_threshold_ratio: float | None
    oom_priority_requested: int | None
    oom_priority: int | None
    net_class_id: int | None
    errors: dict[str, str]


class _Errors(dict[str, str]):
    """Codes by field."""

    def guard(self, field: str, otherwise: T, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `read` gives; where it refuses, its code is kept for the field and `otherwise` stands in."""
        try:
            return read(*args, **kwargs)
        except Refused as refusal:
            self[field] = refusal.reason
            return otherwise


def pod_qos(
    annotations: Mapping[str, str], cluster: ClusterDialect = KATALYST, machine_numas: Sequence[int] | None = None
) -> PodQos:
    """Everything that the annotations of a pod say; `machine_numas` are checked where they are known."""
    said, numas = annotations, machine_numas
    errors = _Errors()
    guard = errors.guard
    level = guard("qos_level", None, qos_class, said, cluster.selectors)
    dedicated = level == "dedicated_cores"
    cpu = _enhancement(said, cluster, "cpu_enhancement", errors)
    memory = _enhancement(said, cluster, "memory_enhancement", errors)
    network = _enhancement(said, cluster, "network_enhancement", errors)
    own = {key: said[key] for key in (NUMA_IDS, NUMA_NUMBER) if key in said} | cpu
    binding = memory.get("numa_binding") == "true"
    wish = guard("oom_priority_requested", None, integer, memory.get("oom_priority"))
    return PodQos(
        qos_level=level,
        enhancements=cpu | memory | network,
        numa_binding=binding,
        numa_exclusive=binding and dedicated and memory.get("numa_exclusive") == "true",
        cpuset_pool=cpu.get("cpuset_pool") or None,
        cpu_burst_policy=_burst_policy(level, cpu.get("cpu_burst_policy")),
        cpu_burst_percent=guard("cpu_burst_percent", None, _percent, cpu.get("cpu_burst_percent")),
        numa_ids=guard("numa_ids", [], _numa_ids, own.get(NUMA_IDS, ""), numas),
        numa_number=guard("numa_number", 0, _numa_number, own.get(NUMA_NUMBER) or "0", numas),
        numa_bind_result=guard("numa_bind_result", None, _bound_to, said.get(NUMA_BIND_RESULT), binding and dedicated),
        suppression_tolerance_ratio=guard(
            "suppression_tolerance_ratio", None, _tolerance, cpu.get("suppression_tolerance_rate"), level
        ),
        rss_overuse_threshold_ratio=guard(
            "rss_overuse_threshold_ratio", None, _above_zero, memory.get("rss_overuse_threshold")
        ),
        oom_priority_requested=wish,
        oom_priority=oom_priority(level, wish),
        net_class_id=_net_class_id(said.get(NET_CLASS_ID)),
        errors=dict(sorted(errors.items())),
    )


def oom_priority(level: QosClass | None, wish: int | None) -> int | None:
    """The OOM priority in force: the base of the class, or the wish clamped to base … base + 99; 300 stays 300."""
    if level is None:
        return None
    if wish == OOM_LAST:
        return OOM_LAST
    base = OOM_BASE[level]
    return base if wish is None else min(max(wish, base), base + OOM_SPAN)


def _enhancement(annotations: Mapping[str, str], cluster: ClusterDialect, name: str, errors: _Errors) -> dict[str, str]:
    """The usable strings of one enhancement annotation; the standard key wins over the one that stands for it."""
    text = annotations.get(DOMAIN + name)
    if text is None:
        text = annotations.get(cluster.enhancement_keys.get(DOMAIN + name, ""))
    if text is None:
        return {}
    nothing: dict[str, Any] = {}
    values = errors.guard(name, nothing, json_object, text)
    strings = {key: value for key, value in values.items() if isinstance(value, str)}
    if len(strings) < len(values):
        errors[name] = "not_a_string"
    return strings


def _burst_policy(level: QosClass | None, text: str | None) -> BurstPolicy | None:
    if level == "reclaimed_cores":
        return "closed"
    return next((policy for policy in get_args(BurstPolicy) if policy == text), None)


def _percent(text: str | None) -> float | None:
    percent = amount(text)
    return None if percent is None else min(percent, _FULL_BURST_PERCENT)


def _tolerance(text: str | None, level: QosClass | None) -> float | None:
    if text is not None and level != "reclaimed_cores":
        refuse(text, f"no suppression tolerance on a pod that is {level}", "not_reclaimed_cores")
    return amount(text)


def _above_zero(text: str | None) -> float | None:
    number = amount(text)
    if number == 0:
        refuse(text, "a number above 0")
    return number


def _numa_ids(text: str, machine_numas: Sequence[int] | None) -> list[int]:
    numas = ids(text)
    if machine_numas is not None and not set(numas) <= set(machine_numas):
        refuse(text, f"NUMA nodes of {machine_numas}", "not_on_machine")
    return numas


def _numa_number(text: str, machine_numas: Sequence[int] | None) -> int:
    number = integer(text) or 0
    if number < 0 or (machine_numas is not None and number > len(machine_numas)):
        refuse(text, "0 to the number of NUMA nodes")
    return number


def _bound_to(text: str | None, needed: bool) -> int | None:
    if text is None and needed:
        refuse(text, "a NUMA node, for the pod is dedicated and NUMA-bound", "missing")
    node = integer(text)
    if node is not None and node < 0:
        refuse(text, "a NUMA node")
    return node


def _net_class_id(text: str | None) -> int | None:
    """The contract has no code for a net class id: text that is none counts as not said."""
    try:
        number = integer(text)
    except Refused:
        return None
    return number if number is not None and 0 <= number <= _MAX_NET_CLASS_ID else None
