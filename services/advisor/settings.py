"""Settings of the advisor: `AdvisorSettings` checks the section, `choose` selects the policy that it names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from services.advisor.core.memory.numa import NumaRules
from services.advisor.core.model.machine import Bounds
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
from services.advisor.core.round.shape_choice import NOTHING_KNOWN, ShapeChoice, ShapeEvidence, ShapeSetting
from services.advisor.core.sizing.isolation import IsolationRules
from services.advisor.registry import known_policies, load, outside_policies, unknown
from shared.contracts.cluster.profiles import PROFILES_PERIOD_S
from shared.core.quantities import Ratio, Seconds
from shared.errors import Refused, SettingProblem
from shared.settings import Settings, all_of, check

NAME = "advisor"
"""The service, and its section of the settings."""
CANONICAL = "canonical"
"""The policy that decides if the selected one fails."""


class IsolationSettings(Settings):
    """When a noisy shared pod gets CPUs of its own, and how many pods may."""

    enabled: bool = False
    """Isolates noisy pods."""
    cpu_ratio: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = IsolationRules().cpu_ratio
    """A container is noisy if it has more runnable tasks than its cores times this ratio, or than `cpu_size` allows."""
    cpu_size: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = IsolationRules().cpu_size
    """A container is also noisy if it has more runnable tasks than its cores plus this number."""
    lock_in_rounds: Annotated[int, Field(ge=1, le=1000)] = IsolationRules().lock_in_threshold
    """Consecutive noisy rounds after which the pod is isolated."""
    lock_out_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = IsolationRules().lock_out_s
    """Seconds of calm after which an isolated pod returns to its pool."""
    max_resource_ratio: Ratio = IsolationRules().max_resource_ratio
    """Greatest share of a pool's cores that may be isolated."""
    max_pod_ratio: Ratio = IsolationRules().max_pod_ratio
    """Greatest share of a pool's pods that may be isolated."""
    disabled_pools: tuple[str, ...] = ()
    """Pools whose pods are never isolated."""

    @property
    def rules(self) -> IsolationRules | None:
        """Return the rules, or None if isolation is off."""
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
    """How much of the remaining CPU and memory is offered to reclaimed pods."""

    cpu: Literal["pool", "supply", "util"] = "pool"
    """pool: all CPUs of the reclaimed pool. supply: the same minus what others use of them. util: more than the pool
    holds while its utilization is low."""
    memory: Literal["canonical", "numa_aware"] = "canonical"
    """canonical: computed for the whole node. numa_aware: computed per NUMA node, and never more than canonical."""
    target_util_ratio: Ratio = UtilRules().target_ratio
    """util: the offer rises while the pool's utilization is below this ratio."""
    max_util_ratio: Ratio = UtilRules().max_ratio
    """util: the offer falls while the utilization is above this ratio; 0: never."""
    max_oversold_ratio: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = UtilRules().max_oversold_ratio
    """util: the offer never exceeds the pool times this ratio."""
    cache_ratio: Ratio = NumaRules().cache_ratio
    """numa_aware: share of the inactive page cache that counts as free."""
    reap_cache: bool = True
    """Drops the page cache of reclaimed pods in bounded steps when memory runs short (cgroup v2)."""

    @property
    def rules(self) -> ReclaimOfferRules:
        """The rules of the offer."""
        util = UtilRules(self.target_util_ratio, self.max_util_ratio, self.max_oversold_ratio)
        return ReclaimOfferRules(self.cpu, util, self.memory, NumaRules(cache_ratio=self.cache_ratio), self.reap_cache)


class HeardProfileSettings(Settings):
    """Whether services may set targets of their own, and exclude their pods from lending."""

    enabled: bool = False
    """Uses the service profiles that central publishes for this node's pods."""
    max_age_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 5 * PROFILES_PERIOD_S
    """Seconds after which a published profile expires and the settings apply to all pods. Central publishes once a
    minute."""


class AdvisorSettings(Settings):
    """The reserve, the pace at which tenants lose CPUs, and the policy that estimates what tenants need."""

    policy: str = "adaptive"
    """Name of a file in services/advisor/policies, or of a policy that a wheel registers."""
    policies: dict[str, dict[str, Any]] = {}
    """Settings of policies, by policy name: `policies: {canonical: {usage_factor: 1.5}}`."""
    reserve_cores: Literal["auto"] | Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = "auto"
    """Cores added to what the tenants need; auto: min(4, cpus // 4)."""
    reserve_pool_cpus: Annotated[int, Field(ge=0, le=8192)] = 0
    """CPUs of a separate pool for system_cores pods. A machine that is too small for the pool does not get it."""
    reserved_memory_bytes: Literal["auto"] | Annotated[int, Field(ge=0, le=1 << 60)] = "auto"
    """Memory never offered to reclaimed pods; auto: min(5 GiB, total // 8)."""
    max_ramp_down_step_cpus: Annotated[int, Field(ge=2, le=8192)] = MAX_RAMP_DOWN_STEP_CPUS
    """Most CPUs that the tenants' pool loses in one step. The least is 2, because a pool of even size cannot shrink
    by 1."""
    min_ramp_down_period_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = MIN_RAMP_DOWN_PERIOD_S
    """Seconds between two such steps."""
    max_ramp_down_wait_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = MAX_RAMP_DOWN_WAIT_S
    """If a step had to be reversed before the next one was due, the wait for the next step doubles, up to this
    bound."""
    shape: ShapeSetting = "auto"
    """partitioned: tenants and reclaimed pods have separate CPUs. shared: tenants may run on the CPUs of both, and
    take precedence over reclaimed pods, which are in the kernel's idle class. auto: shared where the policy declares
    it (adaptive does), the kernel has that class and the policy knows its tenants; otherwise partitioned."""
    isolation: IsolationSettings = IsolationSettings()
    """CPUs for noisy shared pods; off unless `enabled`."""
    offer: OfferSettings = OfferSettings()
    """How much of the remaining CPU and memory is offered to reclaimed pods."""
    service_profiles: HeardProfileSettings = HeardProfileSettings()
    """What services declare in their ServiceProfileDescriptors; off unless `enabled`."""
    policy_budget_ms: Annotated[float, Field(gt=0, le=60_000, allow_inf_nan=False)] = 250.0
    """Milliseconds after which a round of the policy is too slow; canonical then replaces the policy. A round takes
    less than one. Time in which the advisor waits for a CPU that others have does not count; time that a hypervisor
    takes away does."""
    policy_retry_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 300.0
    """Seconds after which a policy that failed or was too slow is started again."""
    max_allocation_age_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 30.0
    """An older allocation is ignored, and the advisor derives placement from requests."""
    period_s: Seconds = 4.5
    """The advisor repeats its last advice after this time without a new sample. Keep it longer than the longest
    period of metrics (`metrics.rest_period_s`); otherwise samples often arrive just after the repetition."""
    max_input_age_s: Seconds = 6.0
    """An older sample is ignored: the advisor publishes one cautious advice and then nothing. Keep it longer than
    `metrics.rest_period_s`, and than two periods of metrics."""
    valid_for_s: Seconds = 10.0
    """How long advice counts as fresh. Afterwards qrm keeps it until its own lease (`qrm.lease_s`) ends."""

    @property
    def rules(self) -> SizingRules:
        """Return the rules that hold for every policy."""
        reserved = None if self.reserved_memory_bytes == "auto" else self.reserved_memory_bytes
        pace = RampPace(
            self.max_ramp_down_step_cpus, self.min_ramp_down_period_s, max_down_wait_s=self.max_ramp_down_wait_s
        )
        return SizingRules(pace, reserved, self.isolation.rules)


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """The checked settings of the advisor, the selected policy, and the policy's settings.

    If a selected policy comes from a wheel and is broken, canonical replaces it, and `instead` says why. `problems`
    names every broken policy that was selected or has settings.
    """

    settings: AdvisorSettings
    policy: Policy[Any, Any]
    policy_settings: PolicySettings
    fallback: ConfiguredPolicy | None = None
    problems: tuple[str, ...] = ()
    instead: str = ""

    def shape(self, evidence: ShapeEvidence) -> ShapeChoice:
        """Return the shape of a node of which this is known."""
        return ShapeChoice.of(self.settings.shape, self.policy, evidence)

    def bounds(self, cpus: int, *, smt: bool, evidence: ShapeEvidence = NOTHING_KNOWN) -> Bounds:
        """Return the bounds that no policy may cross on this machine; without evidence, `auto` is partitioned."""
        own = self.settings
        return Bounds.of(
            cpus,
            smt=smt,
            reserve_cores=None if own.reserve_cores == "auto" else own.reserve_cores,
            reserve_pool_cpus=own.reserve_pool_cpus,
            shape=self.shape(evidence).shape,
        )

    @property
    def rules(self) -> SizingRules:
        """Return the rules that hold for every policy, including the fallback policy."""
        return replace(self.settings.rules, fallback=self.fallback, instead=self.instead)


def choose(section: Mapping[str, Any]) -> PolicyChoice:
    """Check a whole section and select its policy.

    Raises:
        BadConfig: an unknown key or policy, or a value out of bounds.
    """
    return choice_of(check(AdvisorSettings, section, where=NAME))


def choice_of(settings: AdvisorSettings) -> PolicyChoice:
    """Return the choice that follows from checked settings. The settings of all other policies are checked, too.

    Raises:
        BadConfig: an unknown policy, or a value in the settings of one.
    """
    known = known_policies()
    problems: dict[str, str] = {}
    absent: list[SettingProblem] = []
    outside = outside_policies(known)
    for name in dict.fromkeys((*settings.policies, settings.policy)):
        # Load it even if only its settings are given, so that a broken wheel is reported before it is selected.
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
    """Return settings for the fallback policy with the mode of the broken policy, so that it does no more than that
    one could."""
    # Of the broken policy's section only this key is known; its others belong to a model that cannot be loaded.
    mode = check(PolicySettings, {key: value for key, value in section.items() if key == "mode"}, where=NAME).mode
    return settings.model_copy(update={"mode": mode})
