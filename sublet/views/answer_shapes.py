"""The required shape of each part of a service's answer; a part of another shape counts as missing."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

Number = int | float
Value = Number | str | bool | None


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Why(_Shape):
    rule: str
    numbers: dict[str, Value] = {}


class _Intent(_Shape):
    intent_id: str
    namespace: str
    pod: str
    plugin: str
    scope: str
    observed: Number | None = None
    threshold: Number | None = None
    grace_s: Number | None = None
    why: list[_Why] = []


class _Event(_Shape):
    id: str


class _Eviction(_Shape):
    intent: _Intent
    step: str
    events: list[_Event] = []
    calls: list[Any] = []


class _LedgerError(_Shape):
    error: str


class _Victim(_Shape):
    pod: str
    uid: str
    why: _Why | None
    guard: str | None
    says: str


class _Outlook(_Shape):
    met: bool | None = None
    hard: bool | None = None
    scope: str | None = None
    observed: Number | None = None
    threshold: Number | None = None
    below: bool | None = None
    line: list[_Victim] | None = None


class _Refusal(_Shape):
    pod: str
    uid: str
    plugin: str
    guard: str
    why: str
    count: int
    last_age_s: Number


class _Plugin(_Shape):
    mode: str | None = None
    hold: str | None = None


class _ConfigRefusal(_Shape):
    service: str
    revision: int
    why: str
    nodes: int
    such_as: list[str]


class _BatchTerms(_Shape):
    policy: Literal["usage", "request", "maxUsageRequest"]
    capacity: int
    margin: int
    system: int
    reserved: int
    pods_used: int
    pods_requested: int
    pods_larger: int


class _Batch(_Shape):
    cpu_millis: int
    memory_bytes: int
    cpu: _BatchTerms
    memory: _BatchTerms
    cpu_normalization_ratio: Number = 1
    unread: list[str] = []


class _MidTerms(_Shape):
    capacity: int
    prod_reclaimable: int
    unallocated: int
    unused: int
    at_most: int


class _Mid(_Shape):
    cpu_millis: int
    memory_bytes: int
    mode: Literal["prediction", "static"]
    unallocated_percent: int
    known_pods: int
    new_pods: int
    cpu: _MidTerms
    memory: _MidTerms


class _MovingQuota(_Shape):
    uid: str
    container: str
    limit_millis: int
    quota_millis: int
    most_millis: int
    throttled_ratio: Number | None
    held_s: Number
    budget_left_s: Number | None


class _QuotaBurst(_Shape):
    share_pool: str
    containers: list[_MovingQuota]


class _ProfiledService(_Shape):
    namespace: str
    name: str
    targets: dict[str, Number]
    pods: list[str]
    kept: dict[str, list[str]]


class _ServiceProfiles(_Shape):
    age_s: Number | None
    in_force: bool
    stale: str
    services: list[_ProfiledService]


class _CentralConfig(_Shape):
    refused: str | None = None
    file: str | None = None
    revision: int | None = None
    nodes: dict[str, int] | None = None
    refusals: list[_ConfigRefusal] | None = None


_PARTS: Mapping[str, Mapping[str, Any]] = {
    "evictor": {
        "recent": list[_Eviction | _LedgerError],
        "outlook": dict[str, _Outlook],
        "plugins": dict[str, _Plugin | None],
        "refusals": list[_Refusal],
        "conditions": list[dict[str, Any]],
        "taints": list[Any],
    },
    "reporter": {
        "ready": bool,
        "mode": Literal["observe", "enforce"],
        "write_failure": str,
        "services": list[Any],
        "batch": _Batch,
        "mid": _Mid,
    },
    "advisor": {"service_profiles": _ServiceProfiles, "takes_targets": bool, "policy": str},
    "central": {"config": _CentralConfig},
    "qrm": {"topology": list[list[int]], "offline_cpus": str, "quota_burst": _QuotaBurst},
}
_READERS = {service: {key: TypeAdapter(kind) for key, kind in parts.items()} for service, parts in _PARTS.items()}


def well_shaped(service: str, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer without those parts that cannot be shown."""
    readers = _READERS.get(service, {})
    return {key: value for key, value in answer.items() if key not in readers or _fits(readers[key], value)}


def _fits(reader: "TypeAdapter[Any]", value: Any) -> bool:
    try:
        reader.validate_python(value, strict=True)
    except (ValidationError, RecursionError):
        return value is None
    return True
