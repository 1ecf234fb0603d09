"""Settings of the advisor, and the choice of policy they make."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from services.advisor import policies
from services.advisor.core.machine import Bounds
from services.advisor.core.policy import Policy, PolicySettings
from services.advisor.core.pools import Pace
from services.advisor.core.regulate import MAX_RAMP_DOWN_STEP_CPUS, MIN_RAMP_DOWN_PERIOD_S
from services.advisor.core.sizing import Rules
from shared.core.scan import modules_in
from shared.errors import BadConfig
from shared.settings import Settings, check

NAME = "advisor"

Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class AdvisorSettings(Settings):
    """What is kept back, how fast tenants' CPUs may be taken, and which policy says what tenants need."""

    policy: str = "canonical"
    """Name of a file in services/advisor/policies."""
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
    period_s: Seconds = 3.0
    """The last advice is said again after this time without a new sample; more than a period of the metrics service,
    whose samples would else often come just after the repetition."""
    max_input_age_s: Seconds = 5.0
    """An older sample is not used: one cautious advice, then silence. Two periods of the metrics service and more."""
    valid_for_s: Seconds = 10.0
    """How long an advice may be used; qrm's lease."""

    def bounds(self, cpus: int, *, smt: bool) -> Bounds:
        """What no policy may cross on a machine."""
        reserve = None if self.reserve_cores == "auto" else self.reserve_cores
        return Bounds.of(cpus, smt=smt, reserve_cores=reserve, reserve_pool_cpus=self.reserve_pool_cpus)

    @property
    def rules(self) -> Rules:
        """What holds for every policy."""
        reserved = None if self.reserved_memory_bytes == "auto" else self.reserved_memory_bytes
        return Rules(Pace(self.max_ramp_down_step_cpus, self.min_ramp_down_period_s), reserved)


@dataclass(frozen=True, slots=True)
class Choice:
    """Checked settings: the advisor's own, the policy, and the policy's."""

    settings: AdvisorSettings
    policy: Policy[Any, Any]
    policy_settings: PolicySettings


def known_policies() -> dict[str, Policy[Any, Any]]:
    """Every policy of the folder by name, ascending."""
    return {name: module.POLICY for name, module in modules_in(policies).items()}


def choose(section: Mapping[str, Any]) -> Choice:
    """Check a whole section, the settings of policies that are not selected too.

    Raises:
        BadConfig: an unknown key or policy, or a value out of bounds.
    """
    settings = check(AdvisorSettings, section, where=NAME)
    known = known_policies()
    checked = {
        name: check(policy.settings, settings.policies.get(name, {}), where=f"{NAME}.policies.{name}")
        for name, policy in known.items()
    }
    for name in (*settings.policies, settings.policy):
        if name not in known:
            hint = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {hint[0]!r}?" if hint else f"known: {', '.join(known)}"
            raise BadConfig(f"settings: {NAME}: no policy {name!r}; {meant}", reason="invalid")
    return Choice(settings, known[settings.policy], checked[settings.policy])
