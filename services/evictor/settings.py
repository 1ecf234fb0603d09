"""Settings of the evictor and of its plugins, those of the plugin folder and those of other wheels."""

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
    """So many evictions in any window of time; dry runs are counted by themselves."""

    limit: Annotated[int, Field(ge=0, le=1_000_000)] = 60
    """Most evictions within the window; 0 allows none."""
    window_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 3600.0
    """How far back evictions count."""


class NamespaceBudget(BudgetSettings):
    """Of each namespace: half of the node's, so that one team's pods never use up what others need."""

    limit: Annotated[int, Field(ge=0, le=1_000_000)] = 30


class OwnerBudget(BudgetSettings):
    """Of each owner: a workload that loses a pod every six minutes on one node makes no headway any more."""

    limit: Annotated[int, Field(ge=0, le=1_000_000)] = 10
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Also at most this share of its pods on the node, and always one. Not set: a node that a single workload fills
    could not be relieved."""


class Budgets(Settings):
    """Bounds over long spans; `evictions_per_minute` bounds the moment. They survive restarts of the evictor, and of
    the machine where the state folder does (docs/facts/safety-rules.md#bounds-of-eviction)."""

    node: BudgetSettings = BudgetSettings()
    """One a minute on and on: a quarter of what one plugin's cooling lets through. A node that needs more is too small
    for its work, and that is for people to see to."""
    namespace: NamespaceBudget = NamespaceBudget()
    """Evictions of each namespace's pods."""
    owner: OwnerBudget = OwnerBudget()
    """Evictions of each owner's pods; a pod without an owner has no such budget."""

    @property
    def in_order(self) -> tuple[Budget, ...]:
        """The budgets as the core reads them, the widest first."""
        return (
            Budget("node", self.node.limit, self.node.window_s),
            Budget("namespace", self.namespace.limit, self.namespace.window_s),
            Budget("owner", self.owner.limit, self.owner.window_s, self.owner.share),
        )


class EvictorSettings(Settings):
    """Bounds that hold for every plugin, and a section for each plugin under its file's name."""

    max_input_age_s: Seconds = 5.0
    """A sample older than this is no evidence, and two samples further apart are not in a row."""
    max_allocation_age_s: Seconds = 15.0
    """What is offered to reclaimed pods is unknown once the last allocation is older than this."""
    confirm_samples: Annotated[int, Field(ge=2, le=100)] = 2
    """Samples in a row that must show a pressure; one sample is never enough."""
    cooling_s: Annotated[float, Field(ge=0, le=3600)] = 15.0
    """Time after an eviction in which the same plugin evicts nobody."""
    max_without_relief: Annotated[int, Field(ge=1, le=100)] = 3
    """Rounds of evictions in a row without relief after which a plugin stops until its pressure has gone once."""
    evictions_per_minute: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Rate of this node, over all plugins; as many may come at once. It survives restarts."""
    budgets: Budgets = Budgets()
    """Evictions over long spans, of the node, of each namespace and of each owner."""
    victims_per_round: Victims = "one"
    """Of one hard plugin: one, and then it is looked at what that brought, as the tutorial shows it; or enough, which
    are the fewest of its ranking that bring what it observes to its threshold."""
    burst: Annotated[int, Field(ge=1, le=100)] = 3
    """Most evictions of one round over all plugins (docs/facts/katalyst-eviction.md#the-round)."""
    intent_deadline_s: Seconds = 60.0
    """An intent not begun within this time is cancelled."""
    condition_transition_s: Annotated[float, Field(ge=0, le=86400)] = TRANSITION_PERIOD_S
    """The node stays tainted until fresh samples have not shown the condition for so long; 0 taints never."""
    announce_s: Seconds = 0.5
    """Longest wait for the stream to take an intent; then a hard pressure acts without it, a soft one does not."""
    call_timeout_s: Seconds = 10.0
    """Longest wait for one call to whoever evicts."""
    ledger_max_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 40)] = MAX_LEDGER_BYTES
    """Largest ledger, as it is at the start of the evictor. It fills only while the bus is away, with some 8 KiB an
    eviction; once it is full nobody is evicted until its messages are sent (`ledger_closed`)."""
    protected_namespaces: tuple[str, ...] = ("kube-system", "sublet-system")
    """Namespaces of which no pod is ever evicted."""
    plugins: dict[str, dict[str, Any]] = {}
    """Settings of each plugin, by the name of its file or, of another wheel, of its entry point."""

    @property
    def rules(self) -> ConfirmationRules:
        """The bounds of confirmation."""
        return ConfirmationRules(self.confirm_samples, self.max_input_age_s, self.cooling_s, self.max_without_relief)

    @property
    def limits(self) -> RoundLimits:
        """The bounds of one round."""
        return RoundLimits(self.victims_per_round, self.burst)


@dataclass(frozen=True, slots=True)
class Configured:
    """A plugin with its settings."""

    plugin: Plugin[Any, Any, Any]
    settings: PluginSettings


def read(section: Mapping[str, Any]) -> tuple[EvictorSettings, dict[str, Configured]]:
    """The settings, and the enabled plugins by their name in events.

    Raises:
        BadConfig: a value out of bounds, or an unknown plugin.
    """
    settings = check(EvictorSettings, section, where=NAME)
    return settings, enabled_plugins(settings)


def enabled_plugins(settings: EvictorSettings) -> dict[str, Configured]:
    """The enabled plugins by their name in events.

    A plugin of another wheel that cannot be used is replaced by one that sees nothing and says why; the others go on.

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
    # Only those with a section are imported: installing a wheel runs none of its code here.
    for name in sorted(settings.plugins.keys() & outside.keys()):
        found.append(_outside(outside[name], settings.plugins[name], [c.plugin.name for c in found]))
    return {c.plugin.name: c for c in found if c.settings.enabled}


def bounded_plugins(plugins: Mapping[str, Configured], node: NodeMode) -> dict[str, Configured]:
    """The plugins, each going no further than the node's mode allows."""
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
