"""Settings of resctrl: shares of caches and memory bandwidth by class of pods."""

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
    """How the control loop treats one class of pods."""

    throttled: bool = False
    """Bounds the bandwidth of the class; if false, its use is only measured."""
    cross_domain: bool = False
    """The tasks of the class use memory of other domains, so a bound on one domain also reduces traffic at another."""
    capacity_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Share of its capacity that a domain counts with while the class is active there, in percent."""
    target_ccd_mb_s: Bandwidth = 0
    """Target for the busiest L3 cache of the class, approached by a tenth of the distance in each pass; 0: no such
    cap."""


class BandwidthSettings(Settings):
    """Memory bandwidth by class, bounded each second from measurements; `services.qrm.core.resctrl.steering`."""

    enabled: bool = False
    """Bounds memory bandwidth; on a machine that cannot measure it the condition is BandwidthNotSteered."""
    capacity_mb_s: Bandwidth = 0
    """Memory bandwidth of one domain: of a NUMA node, or of the CPUs that share an L3 cache. Measure it, because the
    machine does not report it. At least 10000 if the loop is on."""
    period_s: Seconds = 1.0
    """Seconds between two passes."""
    hold_s: Seconds = 10.0
    """How long a bound stays while a counter of its domain is silent; afterwards the lowest bound applies."""
    active_mb_s: Bandwidth = 1_000
    """Bandwidth from which a class counts as active in a domain."""
    least_ccd_mb_s: Annotated[int, Field(ge=1, le=1 << 24)] = 4_000
    """Lowest bound of a class on one L3 cache."""
    most_ccd_mb_s: Bandwidth = 0
    """Highest bandwidth of a throttled class on one L3 cache; 0: no such bound."""
    remote_limit_mb_s: Bandwidth = 15_000
    """Traffic of a domain's cores from other domains above this amount is not counted."""
    cap_percent: Annotated[int, Field(ge=LEAST_CAP_PERCENT, le=100)] = 50
    """Lowest bound as a share of the wanted bandwidth, in percent, however large the last overshoot was."""
    dedicated_cores: BandwidthClass = BandwidthClass()
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores: BandwidthClass = BandwidthClass()
    """Other tenants (LS)."""
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
        """Return the classes that are bounded."""
        return tuple(qos for qos, one in self._classes().items() if one.throttled)

    def rules(self) -> SteeringRules:
        """Return the rules as the core takes them."""
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
    """Share of L3 cache and memory bandwidth of one class."""

    start_percent: Percent = 0
    """Start of its share of the cache ways, in percent, rounded up to a whole way."""
    end_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """End of its share of the cache ways, in percent, rounded up to a whole way."""
    bandwidth_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Its memory bandwidth, in percent, rounded up to a step of the hardware; 100: no bound."""

    @model_validator(mode="after")
    def _something_between(self) -> Self:
        if self.start_percent >= self.end_percent:
            raise ValueError(f"want start_percent ({self.start_percent}) below end_percent ({self.end_percent})")
        return self

    def rule(self) -> CacheShare:
        """Return the share as the core takes it."""
        return CacheShare(**self.model_dump())


class ResctrlSettings(Settings):
    """Cache and memory bandwidth by class, as in Koordinator; `services.qrm.core.resctrl.shares`."""

    enabled: bool = False
    """Maintains resctrl groups; on a machine without resctrl the condition is KernelLacks."""
    dedicated_cores: ResctrlClass = ResctrlClass()
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores: ResctrlClass = ResctrlClass()
    """Other tenants (LS)."""
    reclaimed_cores: ResctrlClass = ResctrlClass(end_percent=30)
    """Batch work (BE)."""

    bandwidth: BandwidthSettings = BandwidthSettings()
    """Bandwidth bounded from measurements instead of by the percentages above; off unless `enabled`."""

    @model_validator(mode="after")
    def _groups_are_kept(self) -> Self:
        if self.bandwidth.enabled and not self.enabled:
            raise ValueError("bandwidth.enabled needs resctrl.enabled, which keeps the groups that are measured")
        return self

    def rules(self) -> ResctrlRules:
        """Return the rules as the core takes them; empty if resctrl is off."""
        if not self.enabled:
            return ResctrlRules()
        shares: dict[QosClass, ResctrlClass] = {
            "dedicated_cores": self.dedicated_cores,
            "shared_cores": self.shared_cores,
            "reclaimed_cores": self.reclaimed_cores,
        }
        steered = self.bandwidth.throttled if self.bandwidth.enabled else ()
        return ResctrlRules({qos: share.rule() for qos, share in shares.items()}, frozenset(steered))
