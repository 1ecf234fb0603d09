"""A contender decides from what it may see of a node: the CPUs of tenants and batch, and the offer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from services.advisor.core.model.coverage import Coverage
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import CPU_TENANTS, View, total_request_cores
from services.advisor.core.round.decide import Round, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.core.round.shape_choice import ShapeEvidence
from services.advisor.settings import PolicyChoice, choose
from shared.core.copies import copier
from shared.core.text.did_you_mean import closest
from shared.errors import BadConfig, Refused
from sublet.replay.judging.forecasts import Forecasts
from sublet.replay.row_text import RowText
from sublet.replay.traces.frames import Trace

MILLIS = 1000
with_bounds = copier(View, "bounds")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is in force until the next decision, in cores."""

    tenants_cores: float
    """CPUs that tenants may run on."""
    batch_cores: float
    """CPUs that batch work may run on."""
    offered_cores: float
    """What is promised to batch pods."""
    shared_cores: float = 0.0
    """CPUs counted in both of the first two."""

    def room_cores(self, batch_wanted_cores: float) -> float:
        """What tenants have without batch work beside them: shared CPUs are theirs as far as no batch pod uses them.

        The kernel gives a tenant more of a shared CPU than its part, but nobody is credited with that here.
        """
        return self.tenants_cores - min(self.shared_cores, max(0.0, min(batch_wanted_cores, self.batch_cores)))

    def batch_use_cores(self, batch_wanted_cores: float) -> float:
        """What batch pods use: what they want, on the CPUs that there are, and no more than was promised."""
        return min(batch_wanted_cores, self.batch_cores, self.offered_cores)


class Decider(Protocol):
    """One contender on one node. It is asked once a frame, in order."""

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:
        """The sizes that are in force from now on."""
        ...


@runtime_checkable
class Forecaster(Protocol):
    """A decider that says how often its forecasts came true."""

    forecasts: Forecasts


class Contender(Protocol):
    """A row of the comparison."""

    @property
    def name(self) -> str:
        """Its name in the table."""
        ...

    def bounds(self, trace: Trace) -> Bounds:
        """What its view of a node knows of the machine."""
        ...

    def start(self, trace: Trace) -> Decider:
        """A new decider for a node."""
        ...


@dataclass(frozen=True)
class PolicyContender:
    """A policy of the advisor, decided by the very functions that the service calls.

    Where it fails no other policy stands in for it: the row would then show that policy's result.
    """

    name: str
    choice: PolicyChoice

    def bounds(self, trace: Trace) -> Bounds:
        """See `Contender`."""
        return self.choice.bounds(trace.cpus, smt=trace.smt)

    def start(self, trace: Trace) -> "_PolicyDecider":
        """See `Contender`."""
        return _PolicyDecider(self.name, self.choice, trace)


class _PolicyDecider:
    def __init__(self, name: str, choice: PolicyChoice, trace: Trace) -> None:
        self._name, self._node, self._choice = name, trace.node, choice
        self._cpus, self._smt = trace.cpus, trace.smt
        # A recording does not say what its kernel can, and a trace of use has none: the question is what a policy would
        # make of the node.
        self._evidence = ShapeEvidence(idle_class=True)
        self._bounds: Bounds | None = None
        """Other ones than the view's, once the CPUs are shared."""
        self._chosen = ConfiguredPolicy(choice.policy, choice.policy_settings)
        self._rules = replace(choice.settings.rules, says_why=False)
        self._round: Round | None = None
        self.forecasts = Forecasts()
        self._coverage: Mapping[str, Coverage] = {}

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:  # noqa: ARG002
        if self._bounds is not None:
            view = with_bounds(view, self._bounds)
        try:
            done = self._round = decide(view, now_s, self._chosen, self._rules, self._round)
        except Refused as refusal:
            raise Refused(f"{self._name}: {self._node} at {now_s:g} s: {refusal}", reason=refusal.reason) from refusal
        if coverage_of := self._choice.policy.coverage:
            # Of all tenants, or of those of the share pool where there are several.
            before, self._coverage = self._coverage, coverage_of(done.policy_state)
            self.forecasts.observe(before, self._coverage)
        if not self._evidence.knows_tenants:
            self._observe(done, view)
        return _sizes(view.bounds.cpus, done)

    def _observe(self, done: Round, view: View) -> None:
        """The next round has the shape that follows from this one, as the service's has."""
        self._evidence = self._evidence.with_round(done, view, self._chosen.policy)
        bounds = self._choice.bounds(self._cpus, smt=self._smt, evidence=self._evidence)
        if bounds != view.bounds:
            # Sizes of another shape cannot limit the next ones; what was learned stays.
            self._bounds, self._round = bounds, None
            self._chosen = replace(self._chosen, learned=done.states)


def _sizes(cpus: int, done: Round) -> Sizes:
    """What a round comes to; tenants have every pool but the reclaimed one and the reserve."""
    reclaim, quota = done.sizes.reclaim_cpus, done.quota_millis
    own = done.sizes.share_cpus + sum(size.cpus for size in done.own_pools)
    unreserved = cpus - done.sizes.reserve_cpus
    # With overlapping pools tenants may run everywhere.
    tenants = unreserved if done.sizes.overlap else min(own, cpus)
    return Sizes(
        tenants_cores=tenants,
        batch_cores=reclaim if quota is None else min(reclaim, quota / MILLIS),
        offered_cores=done.offered_millis / MILLIS,
        shared_cores=max(0, tenants + reclaim - unreserved),
    )


@dataclass(frozen=True)
class StaticContender:
    """No colocation by use: tenants keep what they request, for ever; only what nobody requested is offered."""

    name: str = "static"

    def bounds(self, trace: Trace) -> Bounds:
        """See `Contender`."""
        return Bounds.of(trace.cpus, smt=trace.smt)

    def start(self, trace: Trace) -> "StaticContender":  # noqa: ARG002
        """See `Contender`."""
        return self

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:  # noqa: ARG002
        """See `Decider`."""
        bounds = view.bounds
        requested = total_request_cores(view.of(*CPU_TENANTS))
        share = min(max(requested, bounds.min_share_cpus), bounds.max_share_cpus)
        return Sizes(share, bounds.cpus - share, bounds.cpus - share)


def policy_of(text: str) -> PolicyContender:
    """A policy from `NAME[=ALIAS][:key=value,…]`: keys of its own settings, or of the advisor's.

    Raises:
        BadConfig: no such policy or key, or a value out of bounds.
    """
    row = RowText.of("--policy", text)
    try:
        choice = choose(_section(row.name, row.given))
    except BadConfig as fault:
        raise BadConfig(f"--policy {text}: {fault}{_meant(row.given)}", reason=fault.reason) from None
    if choice.problems:
        raise BadConfig(f"--policy {text}: {'; '.join(choice.problems)}", reason="invalid")
    return PolicyContender(row.alias, choice)


def _meant(given: Mapping[str, Any]) -> str:
    """A policy's own keys are named by what refuses it; here those of the advisor that were nearly said."""
    from services.advisor.settings import AdvisorSettings

    own = AdvisorSettings.model_fields
    near = [meant for key in given if key not in own and (meant := closest(key, own))]
    return f" (did you mean the advisor's {', '.join(near)}?)" if near else ""


def _section(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The advisor's section of the settings: a key that it does not have itself is the policy's."""
    from services.advisor.settings import AdvisorSettings

    own = {key: value for key, value in given.items() if key in AdvisorSettings.model_fields}
    rest = {key: value for key, value in given.items() if key not in own}
    return {**own, "policy": name, **({"policies": {name: rest}} if rest else {})}
