"""The bounds by which central judges nodes: of time, share and pace (docs/facts/safety-rules.md#guards-on-counts)."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from shared.core.quantities import Ratio, Span

MAX_BAD_RATIO = 0.2
"""Share of nodes that may look bad (docs/facts/katalyst-cluster.md#lost-agents)."""
ACTIONS_PER_S = 0.1
"""Nodes acted on in a second, as in Katalyst."""
TAINT_S = 600.0
"""A node lost for longer is tainted: Katalyst's 10 minutes."""
EVICT_S = 1200.0
"""The reclaimed pods of a node lost for longer are evicted: Katalyst's 20 minutes."""


class Rules(BaseModel):
    """When a node counts as late or lost, and when too many look bad at once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    late_s: Span = 30.0
    """A node silent for longer is late; three heartbeats of 10 s."""
    probe_max_age_s: Span = 15.0
    """Central trusts the bus while it received its own probe within this time."""
    api_max_age_s: Span = 60.0
    """Central trusts what it knows from the API server while it is not older than this."""
    taint_s: Span = TAINT_S
    """A node lost for longer gets no new reclaimed pods."""
    evict_s: Span = EVICT_S
    """A tainted node lost for longer loses its reclaimed pods."""
    max_bad_ratio: Ratio = MAX_BAD_RATIO
    """Share of a cluster, pool or zone that may look bad before action on it pauses."""
    sudden_window_s: Span = 60.0
    """Nodes that fell silent within this window are counted together."""
    sudden_nodes: Annotated[int, Field(ge=1)] = 3
    """More nodes than this (and than `sudden_ratio` of all) falling silent together have one cause: pause."""
    sudden_ratio: Ratio = 0.05
    """Share of all nodes that must be exceeded together with `sudden_nodes`."""
    sudden_pause_s: Span = 900.0
    """Pause after such an event; also how long a larger number of nodes is remembered."""
    total_drop_ratio: Ratio = 0.1
    """Share of all nodes that may disappear before everything pauses."""
    clean_s: Span = 300.0
    """A pause ends only after this long without its cause."""
    actions_per_s: Annotated[float, Field(ge=0, le=10)] = ACTIONS_PER_S
    """Nodes tainted or freed of reclaimed pods in a second, all in all; 0: none."""
    pods_per_node: Annotated[int, Field(ge=1, le=100)] = 2
    """Pods of one lost node that are on their way out at the same time."""
    pods_per_min: Annotated[float, Field(ge=0, le=600)] = 10.0
    """Pods of lost nodes evicted in a minute, all in all; 0: none."""
    forget_s: Span = 86_400.0
    """A node silent for longer leaves the ledger; nothing is done to it."""
