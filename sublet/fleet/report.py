"""`FleetReport` is what was measured of one fleet, for people and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sublet.demo.load import percentile

KOORDINATOR_REPORT_S = 60.0
"""Koordinator's agents write their NodeMetric once in so long, by default (docs/facts/targets.md#reaction-and-cost)."""


@dataclass(slots=True)
class FleetReport:
    """Figures of central; None: the stage was not reached."""

    nodes: int
    period_s: float
    leaves: int
    shards: int = 1
    """Into so many the heartbeats were divided."""
    cpu_of_a_core: float | None = None
    """At rest, of the central that leads."""
    others_cpu_of_a_core: list[float] = field(default_factory=list)
    """The same of each central that only hears heartbeats."""
    rss_bytes: int | None = None
    heartbeats_per_s: float | None = None
    writes_per_s: float | None = None
    """Requests that change something at the API server, of central, at rest; None without one."""
    verdicts_s: list[float] = field(default_factory=list)
    """How long after the moment at which it was due each verdict of a silent node was said."""
    false_verdicts: list[str] = field(default_factory=list)
    """Nodes that were called silent and were not."""
    missed_verdicts: list[str] = field(default_factory=list)
    """Nodes that were silent and were not called so."""
    configured_s: float | None = None
    """From the change of the configuration to the last node that works with it."""
    told_s: float | None = None
    """Of that, until hub and leaves had told the last connection; the rest is what the simulated nodes take to read
    it, all in one process."""
    configure_cpu_s: float | None = None
    """CPU of the simulated nodes for it."""
    acknowledged_s: float | None = None
    """The same until central knows it of all."""
    reconnected_s: float | None = None
    """From the moment at which the servers were back to the heartbeat of the last node."""
    storm_cpu_s: float | None = None
    """CPU of central for that."""
    refused: int = 0
    """Heartbeats that central did not take."""

    @property
    def well(self) -> bool:
        """Whether every verdict was right."""
        return not self.false_verdicts and not self.missed_verdicts

    def verdict_s(self, percent: float) -> float | None:
        """A percentile of the verdicts' delays."""
        return percentile(self.verdicts_s, percent)

    def document(self) -> dict[str, Any]:
        """For programs: the same figures, with the peer's."""
        delays = {f"verdict_p{percent}_s": _rounded(self.verdict_s(percent)) for percent in (50, 99)}
        figures = {name: _rounded(value) for name, value in asdict(self).items() if name != "verdicts_s"}
        return {**figures, **delays, "verdicts": len(self.verdicts_s),
                "peer_writes_per_s": _rounded(self.nodes / KOORDINATOR_REPORT_S)}  # fmt: skip

    def lines(self) -> Iterator[tuple[str, str]]:
        """What is printed: name and figure."""
        yield "nodes", f"{self.nodes}, a heartbeat every {self.period_s:g} s, over {self.leaves} leaves"
        yield "central's CPU at rest", _said(self.cpu_of_a_core, "{:.1%} of a core")
        if self.shards > 1:
            others = ", ".join(f"{share:.1%}" for share in self.others_cpu_of_a_core)
            yield f"of the others that hear {self.shards} shards", others or "not measured"
        yield "central's memory (RSS)", _said(self.rss_bytes and self.rss_bytes / 1e6, "{:.0f} MB")
        yield "heartbeats taken", _said(self.heartbeats_per_s, "{:.1f} /s")
        yield "heartbeats refused", str(self.refused)
        peer = f"; Koordinator: {self.nodes / KOORDINATOR_REPORT_S:.1f} /s, one for each node and minute"
        yield "central's writes to the API server", _said(self.writes_per_s, "{:.2f} /s" + peer)
        delays = " / ".join(_said(self.verdict_s(percent), "{:.2f}") for percent in (50, 99))
        yield "verdict on a silent node, p50 / p99", f"{delays} s after it was due, of {len(self.verdicts_s)}"
        yield "false verdicts", _named(self.false_verdicts)
        yield "missed verdicts", _named(self.missed_verdicts)
        yield "configuration on all nodes", _said(self.configured_s, "{:.2f} s")
        yield "told to all nodes", _said(self.told_s, "{:.2f} s")
        yield "CPU of the simulated nodes for it", _said(self.configure_cpu_s, "{:.2f} s")
        yield "known to central", _said(self.acknowledged_s, "{:.2f} s")
        yield "all heard again after a reconnection", _said(self.reconnected_s, "{:.2f} s")
        yield "central's CPU for it", _said(self.storm_cpu_s, "{:.2f} s")


def _said(value: float | None, form: str) -> str:
    return "not measured" if value is None else form.format(value)


def _named(nodes: Sequence[str]) -> str:
    shown = ", ".join(nodes[:3])
    return f"{len(nodes)} ({shown}{', …' if len(nodes) > 3 else ''})" if nodes else "0"


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
