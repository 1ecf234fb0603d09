"""Defines a sizing policy: one file in `services/advisor/policies` that ends in `POLICY = Policy(...)`.

A policy estimates what the tenants need. Floors, even sizes and the resulting offer are the same for all policies
(`core/sizing`, `core/memory`, `core/offer`), so no policy can starve a tenant or offer what does not exist. The same
holds for the reserve and the pace of shrinking, unless a policy owns them: its demand then includes whatever is kept
above the need, and is applied at once. The advisor calls a policy for each region of the node separately, and keeps a
state for each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict

from services.advisor.core.model.coverage import Coverage
from services.advisor.core.model.machine import ShapeName
from services.advisor.core.model.view import View
from shared.contracts.envelope import Reason
from shared.contracts.mode import Mode


class PolicySettings(BaseModel):
    """Settings that every policy has; a policy's own model extends this one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = "enforce"
    """observe: only say what it would advise. dry-run: qrm goes as far as the plan. enforce: cpusets are written."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What the tenants need, without the common reserve, and why."""

    cores: float
    memory_bytes: int
    why: Sequence[Reason] = ()
    """A tuple, or `Reasons`."""
    reclaim_quota_cores: float | None = None
    """CPU time that all reclaimed pods together may use, whatever the size of their pool; None: no such limit."""
    now_cores: float | None = None
    """What of it is used now; the rest is a margin. If CPUs are shared, by choice or on a small machine, the margin is
    kept from the reclaimed pool, not from the offer, which is held steady. None: the margin is not known."""
    most_offered_ratio: float = 1.0
    """Part of the CPUs that the offer and what tenants use on average make up together at most, if CPUs are shared:
    batch work then does not fill every trough, and a rise from one finds CPUs that are idle."""
    common: bool = False
    """Applies the common reserve and pace although the policy owns its own, while it has not learned enough."""
    may_share: bool = False
    """Whether CPUs may be shared although the demand is `common`: what is known already speaks for it."""


Owner = Literal["common", "own"]
"""Whose rule applies: the common one from the settings, or the policy's own."""
C = TypeVar("C", bound=PolicySettings)
S = TypeVar("S")


@dataclass(frozen=True)
class PolicyPast(Generic[S]):
    """How the learned state of a policy is stored for the next run of the advisor, and read again.

    Times are seconds since 1970. `states_of` never raises: it returns why a text is not this policy's, or "".
    """

    text_of: Callable[[Mapping[str, S], float], bytes]
    """The states by region, at this wall time."""
    states_of: Callable[[bytes, float], tuple[Mapping[str, S], str]]
    """Return the states by region from a text, read at this wall time."""


@dataclass(frozen=True)
class Policy(Generic[C, S]):
    """A policy: pure functions and a model of its settings.

    `start` gives the state before the first round. `judge` gets the state of the last round, the view, the time in
    monotonic seconds and the settings, and returns the next state and the demand.
    """

    name: str
    settings: type[C]
    start: Callable[[], S]
    judge: Callable[[S, View, float, C], tuple[S, Demand]]
    reserve: Owner = "common"
    """own: nothing is added to the demand; `view.region_reserve_cores` holds what would be added."""
    pace: Owner = "common"
    """own: a smaller demand is applied at once and completely."""
    shape: ShapeName = "partitioned"
    """shared: `advisor.shape: auto` shares the CPUs of nodes whose kernel has an idle class, once this policy has
    decided a round with tenants (`core/round/shape_choice`)."""
    takes_targets: bool = False
    """Whether targets of services' profiles (`ContainerView.profile`) go before those of its settings."""
    past: PolicyPast[S] | None = None
    """None: the learned state is lost with each restart of the advisor."""
    coverage: Callable[[S], Mapping[str, Coverage]] | None = None
    """How often forecasts of a state came true, by how far they look ahead; None: the policy makes none."""

    def __post_init__(self) -> None:
        """Refuse an owner or shape that is none: a policy of a wheel is not read by a type checker.

        Raises:
            ValueError: names the field, its value and what it may be.
        """
        for name, known in (("reserve", Owner), ("pace", Owner), ("shape", ShapeName)):
            if (value := getattr(self, name)) not in get_args(known):
                raise ValueError(f"policy {self.name!r}: {name}={value!r}; want one of {', '.join(get_args(known))}")
