"""The figures by which a contender is judged, counted frame by frame."""

from dataclasses import dataclass, field, fields
from typing import Any, Self

from sublet.replay.batch import Batch
from sublet.replay.contender import Sizes
from sublet.replay.judging.forecasts import Forecasts
from sublet.replay.judging.regrow import Regrow

# Use is a sum of floating point numbers; a millionth of a core is no violation.
EPSILON_CORES = 1e-6
HOUR_S = 3600.0
_LARGEST = ("max_utilisation", "largest_shortage_cores", "largest_queue_core_s")
"""Of several nodes the largest counts; everything else adds up."""


@dataclass(slots=True)
class Score:
    """Sums over time; those of several nodes add up. CPU in core-seconds."""

    machine_core_s: float = 0.0
    node_s: float = 0.0
    tenants_core_s: float = 0.0
    """What tenants wanted."""
    room_core_s: float = 0.0
    """What tenants had."""
    offered_core_s: float = 0.0
    batch_core_s: float = 0.0
    """What batch work could run on, of what was promised to it."""
    violation_s: float = 0.0
    violation_core_s: float = 0.0
    """What tenants wanted above what they had."""
    max_utilisation: float = 0.0
    """The largest ratio of what tenants wanted to what they had."""
    size_changes: int = 0
    evictions: int = 0
    offer_falls: int = 0
    withheld_s: float = 0.0
    """How long offers that fell stayed down although the tenants wanted no more than before."""
    promised_core_s: float = 0.0
    """What the batch pods that were started wanted."""
    wasted_core_s: float = 0.0
    """What evicted batch pods had done."""
    evicted_lives_s: float = 0.0
    finished_pods: int = 0
    episodes: int = 0
    """How often tenants began to want more than they had."""
    largest_shortage_cores: float = 0.0
    largest_queue_core_s: float = 0.0
    """The most work of tenants that waited for CPUs."""
    forecasts: Forecasts = field(default_factory=Forecasts)

    def count(self, covers_s: float, cpus: int, wanted_cores: float, sizes: Sizes, batch_cores: float) -> bool:
        """Count the time before a frame, with the sizes that were in force then; True where tenants wanted more."""
        room = sizes.room_cores(batch_cores)
        missing = wanted_cores - room
        violated = missing > EPSILON_CORES
        self.machine_core_s += cpus * covers_s
        self.node_s += covers_s
        self.tenants_core_s += wanted_cores * covers_s
        self.room_core_s += room * covers_s
        self.offered_core_s += sizes.offered_cores * covers_s
        self.batch_core_s += sizes.batch_use_cores(batch_cores) * covers_s
        self.promised_core_s += batch_cores * covers_s
        # Without any room there is no ratio; the violation says it.
        if room > 0:
            self.max_utilisation = max(self.max_utilisation, wanted_cores / room)
        if violated:
            self.violation_s += covers_s
            self.violation_core_s += missing * covers_s
            if covers_s > 0:
                self.largest_shortage_cores = max(self.largest_shortage_cores, missing)
        return violated

    def add(self, other: Self) -> None:
        """Add another node's sums."""
        self.forecasts.add(other.forecasts)
        for one in fields(self):
            if one.name == "forecasts":
                continue
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            setattr(self, one.name, max(mine, theirs) if one.name in _LARGEST else mine + theirs)

    def count_batch(self, batch: Batch) -> None:
        """Set what became of a node's batch pods."""
        self.evictions, self.finished_pods = batch.evicted, batch.finished
        self.wasted_core_s, self.evicted_lives_s = batch.wasted_core_s, batch.evicted_lives_s

    def count_regrow(self, regrow: Regrow) -> None:
        """Set how a node's offers came back."""
        self.offer_falls, self.withheld_s = regrow.falls, regrow.withheld_s

    def figures(self, oracle: Self) -> dict[str, Any]:
        """The row of the comparison: units in the names, None where nothing was counted.

        Sums over time are among them, so that the rows of several documents can be added up.
        """
        served_core_s = self.tenants_core_s - self.violation_core_s
        return {
            "offered_core_hours": round(self.offered_core_s / HOUR_S, 3),
            "offered_percent": _percent(self.offered_core_s, self.machine_core_s),
            "batch_core_hours": round(self.batch_core_s / HOUR_S, 3),
            "machine_used_percent": _percent(served_core_s + self.batch_core_s, self.machine_core_s),
            "violation_s": round(self.violation_s, 3),
            "violation_core_s": round(self.violation_core_s, 3),
            "violation_ppm": _ratio(1e6 * self.violation_core_s, self.tenants_core_s, 1),
            "evictions": self.evictions,
            "size_changes": self.size_changes,
            "offer_falls": self.offer_falls,
            "withheld_s": round(self.withheld_s, 3),
            "regrow_mean_s": _ratio(self.withheld_s, self.offer_falls, 1),
            "tenant_utilisation_mean_percent": _percent(self.tenants_core_s, self.room_core_s),
            "tenant_utilisation_max_percent": round(100 * self.max_utilisation, 1) if self.node_s else None,
            "oracle_percent": _percent(self.batch_core_s, oracle.batch_core_s),
            "goodput_core_hours": round((self.batch_core_s - self.wasted_core_s) / HOUR_S, 3),
            "wasted_core_hours": round(self.wasted_core_s / HOUR_S, 3),
            "promised_core_hours": round(self.promised_core_s / HOUR_S, 3),
            "offer_kept_percent": _percent(self.batch_core_s, self.promised_core_s),
            "finished_pods": self.finished_pods,
            "life_before_eviction_s": _ratio(self.evicted_lives_s, self.evictions, 1),
            "episodes": self.episodes,
            "largest_shortage_cores": round(self.largest_shortage_cores, 3),
            "largest_queue_core_s": round(self.largest_queue_core_s, 3),
            "tenants_core_hours": round(self.tenants_core_s / HOUR_S, 3),
            "room_core_hours": round(self.room_core_s / HOUR_S, 3),
            "machine_core_hours": round(self.machine_core_s / HOUR_S, 3),
            "forecasts": self.forecasts.figures(),
        }


def _percent(part: float, whole: float) -> float | None:
    return _ratio(100 * part, whole, 2)


def _ratio(part: float, whole: float, digits: int) -> float | None:
    return round(part / whole, digits) if whole > 0 else None
