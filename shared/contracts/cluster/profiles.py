"""ServiceProfiles: what central tells a node of the services that its pods are of."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, StringConstraints, model_validator

from shared.contracts.envelope import Count, Message, MessagePart
from shared.contracts.ids import ObjectName, PodUid

PROFILES_PERIOD_S = 60.0
"""Between two messages to a node on which nothing changes."""
MAX_PODS = 512
MAX_SERVICES = 256

TARGET_BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "cpu_usage_ratio": (0.05, 0.95),
    "cpu_sched_wait": (1.0, 10_000.0),
    "cpu_pressure": (0.1, 100.0),
    "cpi": (0.1, 100.0),
}
"""Least and most of each target: beyond them no policy could follow it, or none would have to."""


def _target(name: str) -> object:
    least, most = TARGET_BOUNDS[name]
    return Field(ge=least, le=most)


class IndicatorTargets(MessagePart):
    """The values at which indicators of a service's pool shall be kept at most; None: the node's own settings hold."""

    cpu_usage_ratio: Annotated[float, _target("cpu_usage_ratio")] | None = None
    """Cores used, of the CPUs of the pool."""
    cpu_sched_wait: Annotated[float, _target("cpu_sched_wait")] | None = None
    """Milliseconds for which tasks waited for a CPU, in a second and for each CPU of the pool."""
    cpu_pressure: Annotated[float, _target("cpu_pressure")] | None = None
    """Percent of the last 10 s in which at least one task waited."""
    cpi: Annotated[float, _target("cpi")] | None = None
    """Cycles per instruction."""


NO_TARGETS: Final = IndicatorTargets()
KeptFor = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]{0,31}$")]
"""Why pods keep what they asked for, in one word: baseline, poor, indicator."""


class ProfiledService(MessagePart):
    """One service, by its ServiceProfileDescriptor, and its pods on the node."""

    namespace: ObjectName
    name: ObjectName
    targets: IndicatorTargets = NO_TARGETS
    pods: tuple[PodUid, ...] = ()
    """All of them."""
    kept: Annotated[dict[KeptFor, tuple[PodUid, ...]], Field(max_length=8)] = {}
    """Those of which nothing is lent that they asked for."""


class ServiceProfiles(Message):
    """All services of a node that have a profile; `node` is whom central tells. None: its last pod of them has gone."""

    kind: ClassVar[str] = "profiles"

    services: Annotated[tuple[ProfiledService, ...], Field(max_length=MAX_SERVICES)] = ()
    pods_left_out: Count = 0
    """Pods that are not in it, because there are more than a node runs."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        pods = sum(len(one.pods) + sum(map(len, one.kept.values())) for one in self.services)
        if pods > 2 * MAX_PODS:
            raise ValueError(f"{pods} pods, at most {2 * MAX_PODS}")
        return self
