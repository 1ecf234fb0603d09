"""Settings of the evictor and its plugins, including plugins from other wheels."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint
from typing import Annotated, Any

from pydantic import Field

from services.evictor.core.arbiter.budgets import Budget
from services.evictor.core.arbiter.choice import RoundLimits, Victims
from services.evictor.core.arbiter.confirmation import ConfirmationRules
from services.evictor.core.plugin import Plugin, PluginSettings
from services.evictor.core.taints.conditions import TRANSITION_PERIOD_S
from services.evictor.registry import known_plugins, load, outside_plugins, unknown, unusable
from shared.contracts.mode import NodeMode
from shared.core.evictions.intents import MAX_LEDGER_BYTES
from shared.core.node_mode import bounded
from shared.core.quantities import Seconds
from shared.errors import Refused
from shared.settings import Settings, all_of, check

NAME = "evictor"


class BudgetSettings(Settings):
    """Most evictions within any window of time; dry runs are counted separately."""

    limit: Annotated[int, Field(ge=0, le=1_000_000)] = 60
    """Most evictions within the window; 0: none."""
    window_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 3600.0
    """Length of the window in seconds."""


class NamespaceBudget(BudgetSettings):
    """Budget of each namespace: half of the node's, so that one team's pods never use up the whole budget."""

    limit: Annotated[int, Field(ge=0, le=1_000_000)] = 30


class OwnerBudget(BudgetSettings):
    """Budget of each owner: a workload that loses a pod every six minutes on one node makes no progress."""

    limit: Annotated[int, Field(ge=0, le=1_000_000)] = 10
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Also bounds evictions to this share of the owner's pods on the node, and always allows one. Not set: no such
    bound, because a node filled by one workload could otherwise not be relieved."""


class Budgets(Settings):
    """Bounds over long spans; `evictions_per_minute` bounds the moment. Budgets survive restarts of the evictor, and
    of the machine if the state folder does (docs/facts/safety-rules.md#bounds-of-eviction)."""

    node: BudgetSettings = BudgetSettings()
    """Evictions of the whole node. The default is one a minute, a quarter of what one plugin's cooling allows. A
    node that needs more is too small for its work and needs an operator."""
    namespace: NamespaceBudget = NamespaceBudget()
    """Evictions of each namespace's pods."""
    owner: OwnerBudget = OwnerBudget()
    """Evictions of each owner's pods; a pod without an owner has no such budget."""

    @property
    def in_order(self) -> tuple[Budget, ...]:
        """Return the budgets as the core reads them, the widest first."""
        return (
            Budget("node", self.node.limit, self.node.window_s),
            Budget("namespace", self.namespace.limit, self.namespace.window_s),
            Budget("owner", self.owner.limit, self.owner.window_s, self.owner.share),
        )


class EvictorSettings(Settings):
    """Bounds that hold for every plugin, and a section per plugin under its file name."""

    max_input_age_s: Seconds = 6.0
    """An older sample is no evidence, and two samples further apart than this are not consecutive."""
    max_allocation_age_s: Seconds = 15.0
    """The offer to reclaimed pods is unknown if the last allocation is older than this."""
    confirm_samples: Annotated[int, Field(ge=2, le=100)] = 2
    """Consecutive samples that must show a pressure; one sample is never enough."""
    cooling_s: Annotated[float, Field(ge=0, le=3600)] = 15.0
    """Time after an eviction in which the same plugin evicts no pod."""
    max_without_relief: Annotated[int, Field(ge=1, le=100)] = 3
    """Consecutive rounds without relief after which a plugin stops until its pressure has ended once."""
    evictions_per_minute: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Eviction rate of this node over all plugins, and the largest burst. The rate survives restarts."""
    budgets: Budgets = Budgets()
    """Evictions over long spans, of the node, of each namespace and of each owner."""
    victims_per_round: Victims = "one"
    """Victims of one hard plugin per round. one: evict one pod and observe the effect, as in the tutorial. enough:
    evict the fewest candidates that bring the observed value to its threshold."""
    burst: Annotated[int, Field(ge=1, le=100)] = 3
    """Most evictions of one round over all plugins (docs/facts/katalyst-eviction.md#the-round)."""
    intent_deadline_s: Seconds = 60.0
    """An intent that has not begun within this time is cancelled."""
    condition_transition_s: Annotated[float, Field(ge=0, le=86400)] = TRANSITION_PERIOD_S
    """The node stays tainted until fresh samples have not shown the condition for this time; 0: no taints."""
    announce_s: Seconds = 0.5
    """Longest wait for the stream to store an intent. Afterwards a hard pressure proceeds without it, and a soft one
    does not."""
    call_timeout_s: Seconds = 10.0
    """Longest wait for one call to the actuator."""
    ledger_max_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 40)] = MAX_LEDGER_BYTES
    """Largest ledger, read when the evictor starts. The ledger grows only while the bus is away, by about 8 KiB per
    eviction. When it is full, no pod is evicted until its messages are sent (`ledger_closed`)."""
    protected_namespaces: tuple[str, ...] = ("kube-system", "sublet-system")
    """Namespaces whose pods are never evicted."""
    plugins: dict[str, dict[str, Any]] = {}
    """Settings of each plugin, by file name, or by entry point for a plugin from another wheel."""

    @property
    def rules(self) -> ConfirmationRules:
        """Return the bounds of confirmation."""
        return ConfirmationRules(self.confirm_samples, self.max_input_age_s, self.cooling_s, self.max_without_relief)

    @property
    def limits(self) -> RoundLimits:
        """Return the bounds of one round."""
        return RoundLimits(self.victims_per_round, self.burst)


@dataclass(frozen=True, slots=True)
class Configured:
    """A plugin with its settings."""

    plugin: Plugin[Any, Any, Any]
    settings: PluginSettings


def read(section: Mapping[str, Any]) -> tuple[EvictorSettings, dict[str, Configured]]:
    """Return the settings, and the enabled plugins by their name in events.

    Raises:
        BadConfig: a value out of bounds, or an unknown plugin.
    """
    settings = check(EvictorSettings, section, where=NAME)
    return settings, enabled_plugins(settings)


def enabled_plugins(settings: EvictorSettings) -> dict[str, Configured]:
    """Return the enabled plugins by their name in events.

    A broken plugin from another wheel is replaced by one that detects nothing and reports the reason; the others
    continue.

    Raises:
        BadConfig: a plugin's value out of bounds, or an unknown plugin.
    """
    own = known_plugins()
    outside = outside_plugins(own)
    # A misspelt name would leave the plugin on its defaults in silence: refused, with the name that was meant.
    given = settings.plugins
    absent = [unknown(name, [*own, *outside]) for name in given if name not in own and name not in outside]
    checks = [partial(_configured, name, plugin, given.get(name, {})) for name, plugin in own.items()]
    found = all_of(*checks, problems=absent)
    # Only plugins with a section are imported: installing a wheel runs none of its code here.
    for name in sorted(settings.plugins.keys() & outside.keys()):
        found.append(_outside(outside[name], settings.plugins[name], [c.plugin.name for c in found]))
    return {c.plugin.name: c for c in found if c.settings.enabled}


def bounded_plugins(plugins: Mapping[str, Configured], node: NodeMode) -> dict[str, Configured]:
    """Return the plugins with their modes bounded by the node's mode."""
    return {
        name: Configured(one.plugin, one.settings.model_copy(update={"mode": bounded(one.settings.mode, node)}))
        for name, one in plugins.items()
    }


def _configured(name: str, plugin: Plugin[Any, Any, Any], section: Mapping[str, Any]) -> Configured:
    return Configured(plugin, check(plugin.settings, section, where=(NAME, "plugins", name)))


def _outside(point: EntryPoint, section: Mapping[str, Any], taken: list[str]) -> Configured:
    try:
        plugin = load(point, taken)
    except Refused as refusal:
        # Not BadConfig: a wheel that breaks at an update must not keep the evictor from starting.
        return Configured(unusable(point.name, str(refusal)), PluginSettings())
    return _configured(point.name, plugin, section)
