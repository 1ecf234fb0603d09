"""The settings of resctrl say which part of caches and memory bandwidth a class of pods may use."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from services.qrm.core.resctrl.cap import KP, CapRules
from services.qrm.core.resctrl.plan import LEAST_CAP_PERCENT, PlanRules
from services.qrm.core.resctrl.quotas import QuotaRules
from services.qrm.core.resctrl.shares import CacheShare, ResctrlRules
from services.qrm.core.resctrl.steering import GROUP_OF, SteeringRules
from shared.contracts.pod import QosClass
from shared.core.quantities import Seconds
from shared.settings import Settings

LEAST_CAPACITY_MB = 10_000
Percent = Annotated[int, Field(ge=0, le=100)]
Bandwidth = Annotated[int, Field(ge=0, le=1 << 24)]


class BandwidthClass(Settings):
    """What the loop does with one class of pods."""

    throttled: bool = False
    """Whether its bandwidth is bounded; else only what it uses is counted."""
    cross_domain: bool = False
    """Whether its tasks use the memory of other domains, so that a bound of one domain is felt at another's memory."""
    capacity_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """How much of its capacity a domain is reckoned with while the class is active there, in percent."""
    target_ccd_mb_s: Bandwidth = 0
    """What the busiest of its L3 caches is led to, a tenth of the distance in each pass; 0: no such cap."""


class BandwidthSettings(Settings):
    """Memory bandwidth of classes, bounded each second by what is measured; `services.qrm.core.resctrl.steering`."""

    enabled: bool = False
    """Whether it is; a machine that does not count it is the condition BandwidthNotSteered."""
    capacity_mb_s: Bandwidth = 0
    """What the memory of one domain gives: of a NUMA node, or of those that share an L3 cache. Measure it, for nothing
    tells it. At least 10000 where this is on."""
    period_s: Seconds = 1.0
    """Time between two passes."""
    hold_s: Seconds = 10.0
    """How long a bound stays while a counter of its domain is silent; then it is the least."""
    active_mb_s: Bandwidth = 1_000
    """From so much on a class counts as active in a domain."""
    least_ccd_mb_s: Annotated[int, Field(ge=1, le=1 << 24)] = 4_000
    """Least that a class may move through one L3 cache."""
    most_ccd_mb_s: Bandwidth = 0
    """Most that a throttled class may move through one L3 cache; 0: no such bound."""
    remote_limit_mb_s: Bandwidth = 15_000
    """More than this of what a domain's cores get from other domains is not counted."""
    cap_percent: Annotated[int, Field(ge=LEAST_CAP_PERCENT, le=100)] = 50
    """A bound is at least so much of what is wanted, however much more than it the last one came to, in percent."""
    dedicated_cores: BandwidthClass = BandwidthClass()
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores: BandwidthClass = BandwidthClass()
    """Tenants without (LS)."""
    reclaimed_cores: BandwidthClass = BandwidthClass(throttled=True)
    """Batch work (BE)."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if self.enabled and self.capacity_mb_s < LEAST_CAPACITY_MB:
            raise ValueError(
                f"want capacity_mb_s ({self.capacity_mb_s}) at least {LEAST_CAPACITY_MB}: what one NUMA node gives"
            )
        if 0 < self.most_ccd_mb_s < self.least_ccd_mb_s:
            raise ValueError(
                f"want most_ccd_mb_s ({self.most_ccd_mb_s}) not below least_ccd_mb_s ({self.least_ccd_mb_s})"
            )
        return self

    @property
    def throttled(self) -> tuple[QosClass, ...]:
        """The classes that are bounded."""
        return tuple(qos for qos, one in self._classes().items() if one.throttled)

    def rules(self) -> SteeringRules:
        """As the core takes them."""
        own = {GROUP_OF[qos]: one for qos, one in self._classes().items()}
        bounds = (self.least_ccd_mb_s, self.most_ccd_mb_s)
        return SteeringRules(
            QuotaRules(
                self.capacity_mb_s, {name: one.capacity_percent for name, one in own.items()}, self.active_mb_s
            ),
            PlanRules(
                [name for name, one in own.items() if one.cross_domain],
                self.remote_limit_mb_s,
                self.cap_percent,
                *bounds,
            ),
            [GROUP_OF[qos] for qos in self.throttled],
            {name: CapRules(one.target_ccd_mb_s, KP, *bounds)
             for name, one in own.items() if one.target_ccd_mb_s},
            self.hold_s,
        )  # fmt: skip

    def _classes(self) -> Mapping[QosClass, BandwidthClass]:
        return {
            "dedicated_cores": self.dedicated_cores,
            "shared_cores": self.shared_cores,
            "reclaimed_cores": self.reclaimed_cores,
        }


class ResctrlClass(Settings):
    """What the tasks of one class may use of the L3 cache and of the memory bandwidth."""

    start_percent: Percent = 0
    """Where its part of the cache's ways begins, in percent, rounded up to a whole way."""
    end_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Where it ends, in percent, rounded up to a whole way."""
    bandwidth_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Its memory bandwidth, in percent, rounded up to a step of the hardware; 100: no bound."""

    @model_validator(mode="after")
    def _something_between(self) -> Self:
        if self.start_percent >= self.end_percent:
            raise ValueError(f"want start_percent ({self.start_percent}) below end_percent ({self.end_percent})")
        return self

    def rule(self) -> CacheShare:
        """As the core takes it."""
        return CacheShare(**self.model_dump())


class ResctrlSettings(Settings):
    """Cache and memory bandwidth by class, as Koordinator has it; `services.qrm.core.resctrl.shares`."""

    enabled: bool = False
    """Whether groups of resctrl are kept; a machine without it is the condition KernelLacks."""
    dedicated_cores: ResctrlClass = ResctrlClass()
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores: ResctrlClass = ResctrlClass()
    """Tenants without (LS)."""
    reclaimed_cores: ResctrlClass = ResctrlClass(end_percent=30)
    """Batch work (BE)."""

    bandwidth: BandwidthSettings = BandwidthSettings()
    """Bandwidth bounded by what is measured, in place of the percents above; off unless `enabled`."""

    @model_validator(mode="after")
    def _groups_are_kept(self) -> Self:
        if self.bandwidth.enabled and not self.enabled:
            raise ValueError("bandwidth.enabled needs resctrl.enabled, which keeps the groups that are measured")
        return self

    def rules(self) -> ResctrlRules:
        """As the core takes them; none where it is off."""
        if not self.enabled:
            return ResctrlRules()
        shares: dict[QosClass, ResctrlClass] = {
            "dedicated_cores": self.dedicated_cores,
            "shared_cores": self.shared_cores,
            "reclaimed_cores": self.reclaimed_cores,
        }
        steered = self.bandwidth.throttled if self.bandwidth.enabled else ()
        return ResctrlRules({qos: share.rule() for qos, share in shares.items()}, frozenset(steered))
