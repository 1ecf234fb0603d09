"""`AdvisorSettings` checks the section of the advisor, `choose` selects the policy that it names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from services.advisor.core.memory.numa import NumaRules
from services.advisor.core.model.machine import Bounds, ShapeName
from services.advisor.core.model.ramp import (
    MAX_RAMP_DOWN_STEP_CPUS,
    MAX_RAMP_DOWN_WAIT_S,
    MIN_RAMP_DOWN_PERIOD_S,
    RampPace,
)
from services.advisor.core.offer.offering import ReclaimOfferRules
from services.advisor.core.offer.utilization import UtilRules
from services.advisor.core.policy import Policy, PolicySettings
from services.advisor.core.round.decide import SizingRules
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.core.sizing.isolation import IsolationRules
from services.advisor.registry import known_policies, load, outside_policies, unknown
from shared.contracts.cluster.profiles import PROFILES_PERIOD_S
from shared.core.quantities import Ratio, Seconds
from shared.errors import Refused, SettingProblem
from shared.settings import Settings, all_of, check

NAME = "advisor"
"""The service, and its section of the settings."""
CANONICAL = "canonical"
"""The policy that decides where another fails."""


class IsolationSettings(Settings):
    """When a noisy shared pod gets CPUs of its own, and how many pods may."""

    enabled: bool = False
    """Whether pods are isolated at all."""
    cpu_ratio: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = IsolationRules().cpu_ratio
    """A container is noisy with more runnable tasks than its cores times this, or than `cpu_size` allows."""
    cpu_size: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = IsolationRules().cpu_size
    """A container is noisy also with more runnable tasks than its cores and this together."""
    lock_in_rounds: Annotated[int, Field(ge=1, le=1000)] = IsolationRules().lock_in_threshold
    """Noisy rounds in a row after which its pod is isolated."""
    lock_out_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = IsolationRules().lock_out_s
    """Seconds of calm after which an isolated pod comes back into its pool."""
    max_resource_ratio: Ratio = IsolationRules().max_resource_ratio
    """Part of a pool's cores that may be isolated."""
    max_pod_ratio: Ratio = IsolationRules().max_pod_ratio
    """Part of a pool's pods that may be isolated."""
    disabled_pools: tuple[str, ...] = ()
    """Pools whose pods are never isolated."""

    @property
    def rules(self) -> IsolationRules | None:
        """The rules; None where isolation is off."""
        if not self.enabled:
            return None
        return IsolationRules(
            self.cpu_ratio,
            self.cpu_size,
            self.lock_in_rounds,
            self.lock_out_s,
            self.max_resource_ratio,
            self.max_pod_ratio,
            frozenset(self.disabled_pools),
        )


class OfferSettings(Settings):
    """How much of what is left is offered to reclaimed pods."""

    cpu: Literal["pool", "supply", "util"] = "pool"
    """pool: all CPUs of the reclaimed pool. supply: without what others use of them. util: more than the pool holds
    while it is little used."""
    memory: Literal["canonical", "numa_aware"] = "canonical"
    """canonical: the node as a whole. numa_aware: NUMA node by NUMA node, at most what canonical offers."""
    target_util_ratio: Ratio = UtilRules().target_ratio
    """util: below this use of the pool the offer rises."""
    max_util_ratio: Ratio = UtilRules().max_ratio
    """util: above this use it falls again; 0: never."""
    max_oversold_ratio: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = UtilRules().max_oversold_ratio
    """util: never more than the pool times this."""
    cache_ratio: Ratio = NumaRules().cache_ratio
    """numa_aware: part of the inactive page cache that counts as free."""
    reap_cache: bool = True
    """Whether reclaimed pods' page cache is dropped, in bounded steps, when memory runs short (cgroup v2)."""

    @property
    def rules(self) -> ReclaimOfferRules:
        """The rules of the offer."""
        util = UtilRules(self.target_util_ratio, self.max_util_ratio, self.max_oversold_ratio)
        return ReclaimOfferRules(self.cpu, util, self.memory, NumaRules(cache_ratio=self.cache_ratio), self.reap_cache)


class HeardProfileSettings(Settings):
    """Whether services have a say: targets of their own, and pods of which nothing is lent."""

    enabled: bool = False
    """Whether what central tells of the services of this node's pods is used."""
    max_age_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 5 * PROFILES_PERIOD_S
    """What central told before is not used any more, and the settings hold for all pods. It tells once a minute."""


class AdvisorSettings(Settings):
    """What is kept back, how fast tenants' CPUs may be taken, and which policy says what tenants need."""

    policy: str = "adaptive"
    """Name of a file in services/advisor/policies, or of a policy that a wheel has registered."""
    policies: dict[str, dict[str, Any]] = {}
    """Settings of single policies, by the policy's name: `policies: {canonical: {usage_factor: 1.5}}`."""
    reserve_cores: Literal["auto"] | Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = "auto"
    """Cores added to what the tenants need; auto: min(4, cpus // 4)."""
    reserve_pool_cpus: Annotated[int, Field(ge=0, le=8192)] = 0
    """CPUs of a pool of their own for system_cores pods; not cut out of a machine that is too small for it."""
    reserved_memory_bytes: Literal["auto"] | Annotated[int, Field(ge=0, le=1 << 60)] = "auto"
    """Memory never offered to reclaimed pods; auto: min(5 GiB, total // 8)."""
    max_ramp_down_step_cpus: Annotated[int, Field(ge=2, le=8192)] = MAX_RAMP_DOWN_STEP_CPUS
    """CPUs by which the tenants' pool shrinks at most in one step; with 1 an even size could never shrink."""
    min_ramp_down_period_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = MIN_RAMP_DOWN_PERIOD_S
    """Seconds between two such steps."""
    max_ramp_down_wait_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = MAX_RAMP_DOWN_WAIT_S
    """A step down that had to be taken back before the next one was due doubles the time to the next, up to this."""
    shape: Literal["auto", ShapeName] = "auto"
    """partitioned: tenants and reclaimed pods have CPUs of their own. shared: tenants may run on those of both, before
    reclaimed pods, which are in the kernel's idle class. auto: as the policy says, which with every policy that comes
    with Sublet is partitioned."""
    isolation: IsolationSettings = IsolationSettings()
    """CPUs of their own for noisy shared pods; off unless `enabled`."""
    offer: OfferSettings = OfferSettings()
    """How much of what is left is offered to reclaimed pods."""
    service_profiles: HeardProfileSettings = HeardProfileSettings()
    """What services say of themselves in their ServiceProfileDescriptors; off unless `enabled`."""
    policy_budget_ms: Annotated[float, Field(gt=0, le=60_000, allow_inf_nan=False)] = 250.0
    """A policy that needs longer for one round is replaced by canonical. Milliseconds; a round takes less than one,
    the rest is for the moments in which the machine gives the advisor no CPU."""
    policy_retry_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 300.0
    """A policy that failed or was too slow is tried again after this time, from its beginning."""
    max_allocation_age_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 30.0
    """An older allocation is not used: where pods run is taken from what they ask for."""
    period_s: Seconds = 4.5
    """The last advice is said again after this time without a new sample; more than the longest period of the metrics
    service (`metrics.rest_period_s`), whose samples would else often come just after the repetition."""
    max_input_age_s: Seconds = 5.0
    """An older sample is not used: one cautious advice, then silence. More than the metrics service's period at
    rest (`metrics.rest_period_s`), and two of its periods."""
    valid_for_s: Seconds = 10.0
    """How long an advice counts as fresh; qrm then holds to it until its own lease (`qrm.lease_s`) has ended."""

    @property
    def rules(self) -> SizingRules:
        """What holds for every policy."""
        reserved = None if self.reserved_memory_bytes == "auto" else self.reserved_memory_bytes
        pace = RampPace(
            self.max_ramp_down_step_cpus, self.min_ramp_down_period_s, max_down_wait_s=self.max_ramp_down_wait_s
        )
        return SizingRules(pace, reserved, self.isolation.rules)


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """Checked settings: the advisor's own, the policy, and the policy's.

    Where the chosen policy comes from a wheel and is broken, canonical is the policy, and `instead` says why.
    `problems` names every broken policy that was chosen, or that settings were given for.
    """

    settings: AdvisorSettings
    policy: Policy[Any, Any]
    policy_settings: PolicySettings
    fallback: ConfiguredPolicy | None = None
    problems: tuple[str, ...] = ()
    instead: str = ""

    def bounds(self, cpus: int, *, smt: bool) -> Bounds:
        """What no policy may cross on a machine."""
        own = self.settings
        return Bounds.of(
            cpus,
            smt=smt,
            reserve_cores=None if own.reserve_cores == "auto" else own.reserve_cores,
            reserve_pool_cpus=own.reserve_pool_cpus,
            shape=self.policy.shape if own.shape == "auto" else own.shape,
        )

    @property
    def rules(self) -> SizingRules:
        """What holds for every policy, and who decides where the policy fails."""
        return replace(self.settings.rules, fallback=self.fallback, instead=self.instead)


def choose(section: Mapping[str, Any]) -> PolicyChoice:
    """Check a whole section, and choose by it.

    Raises:
        BadConfig: an unknown key or policy, or a value out of bounds.
    """
    return choice_of(check(AdvisorSettings, section, where=NAME))


def choice_of(settings: AdvisorSettings) -> PolicyChoice:
    """The choice that checked settings make. Settings of policies that are not selected are checked as well.

    Raises:
        BadConfig: an unknown policy, or a value in the settings of one.
    """
    known = known_policies()
    problems: dict[str, str] = {}
    absent: list[SettingProblem] = []
    outside = outside_policies(known)
    for name in dict.fromkeys((*settings.policies, settings.policy)):
        # Loaded also where only settings are given for it: a broken wheel is named before somebody selects it.
        if name in outside:
            try:
                known[name] = load(outside[name])
            except Refused as refusal:
                problems[name] = str(refusal)
        elif name not in known:
            absent.append(unknown(name, (*known, *outside), selected=name == settings.policy))
    checked = _checked_policies(known, settings.policies, absent)
    fallback = ConfiguredPolicy(known[CANONICAL], checked[CANONICAL])
    if settings.policy in known:
        policy, own = known[settings.policy], checked[settings.policy]
    else:
        policy, own = fallback.policy, _in_mode_of(settings.policies.get(settings.policy, {}), fallback.settings)
    return PolicyChoice(settings, policy, own, fallback, tuple(problems.values()), problems.get(settings.policy, ""))


def _checked_policies(
    known: Mapping[str, Policy[Any, Any]], given: Mapping[str, Mapping[str, Any]], absent: Sequence[SettingProblem]
) -> dict[str, PolicySettings]:
    checks = {name: partial(_policy_settings, name, policy, given.get(name, {})) for name, policy in known.items()}
    return dict(zip(checks, all_of(*checks.values(), problems=absent), strict=True))


def _policy_settings(name: str, policy: Policy[Any, Any], given: Mapping[str, Any]) -> PolicySettings:
    checked: PolicySettings = check(policy.settings, given, where=(NAME, "policies", name))
    return checked


def _in_mode_of(section: Mapping[str, Any], settings: PolicySettings) -> PolicySettings:
    """The settings of the policy that stands in, with the mode of the broken one, which bounds how far it goes."""
    # Of the broken policy's section only this key is known; its others belong to a model that cannot be loaded.
    mode = check(PolicySettings, {key: value for key, value in section.items() if key == "mode"}, where=NAME).mode
    return settings.model_copy(update={"mode": mode})
