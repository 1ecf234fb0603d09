"""The Grafana boards of the chart, from one table of panels: python deploy/k8s/boards.py

Each board is a file in `chart/monitoring/boards`, which a test compares. `make test-monitoring` asks a real Prometheus
every query.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOARDS = Path(__file__).parent / "chart/monitoring/boards"
WIDTH, HEIGHT, COLUMNS = 8, 7, 3
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: a title, what its values are, and the queries with their legends."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"


@dataclass(frozen=True, slots=True)
class Board:
    """One board: the name of its file, its title, and its panels from left to right."""

    name: str
    title: str
    panels: tuple[Panel, ...]


P99 = "histogram_quantile(0.99, sum by (le{by}) (rate({metric}_bucket[5m])))"


def p99(metric: str, *by: str) -> str:
    """The 99th percentile of a histogram over five minutes."""
    return P99.format(metric=metric, by="".join(f", {label}" for label in by))


ALL = (
    Board(
        "value",
        "Sublet: what it is worth",
        (
            Panel("Cores offered to batch work", "short", (("sublet:reclaimable_cores:sum", "cores"),)),
            Panel("Memory offered to batch work", "bytes", (("sublet:reclaimable_memory_bytes:sum", "bytes"),)),
            Panel("Core-hours offered in a day", "short", (("sublet:reclaimed_core_hours:1d", "core-hours"),), "stat"),
            Panel("Their price", "short", (("sublet:reclaimed_value:1d", "a day"),), "stat"),
            Panel("Core-hours that batch used in a day", "short", (("sublet:batch_core_hours:1d", "used"),), "stat"),
            Panel("The price of these", "short", (("sublet:batch_value:1d", "a day"),), "stat"),
            Panel(
                "How busy the machines are",
                "percentunit",
                (
                    ("sublet:utilization:ratio", "with batch work"),
                    ("sublet:utilization_without_batch:ratio", "without it"),
                ),
            ),
            Panel("Gained by batch work", "percentunit", (("sublet:utilization_gained:ratio", "of all CPUs"),), "stat"),
            Panel("CPUs by pool", "short", (("sublet:pool_cpus:sum", "{{pool}}"),)),
            Panel(
                "Evictions by plugin",
                "cps",
                (('sum by (plugin) (sublet:evictions:rate10m{phase="created"})', "{{plugin}}"),),
            ),
        ),
    ),
    Board(
        "nodes",
        "Sublet: nodes",
        (
            Panel("Nodes by state", "short", (("sum by (state) (sublet_central_nodes)", "{{state}}"),)),
            Panel("Nodes by configuration", "short", (("sum by (state) (sublet_central_config_nodes)", "{{state}}"),)),
            Panel("Oldest input by service", "s", (("max by (service) (sublet_input_age_seconds)", "{{service}}"),)),
            Panel(
                "Least and most offered by a node",
                "short",
                (
                    ("min(sublet_node_cpu_reclaimable_cores)", "least"),
                    ("max(sublet_node_cpu_reclaimable_cores)", "most"),
                ),
            ),
            Panel("Versions", "short", (("count by (version) (sublet_build_info)", "{{version}}"),)),
            Panel("How event loops run", "short", (("sum by (given) (sublet_event_loop_scheduling)", "{{given}}"),)),
        ),
    ),
    Board(
        "reaction",
        "Sublet: reaction",
        (
            Panel("A step, 99th percentile", "s", ((p99("sublet_step_duration_seconds", "service"), "{{service}}"),)),
            Panel(
                "Event loop lag",
                "s",
                (
                    ("max(sublet_event_loop_lag_seconds)", "worst"),
                    ("quantile(0.5, sublet_event_loop_lag_seconds)", "median"),
                ),
            ),
            Panel(
                "Cgroup writes by result",
                "cps",
                (("sum by (result) (rate(sublet_qrm_cgroup_writes_total[5m]))", "{{result}}"),),
            ),
            Panel(
                "Messages taken", "cps", (("sum by (message) (rate(sublet_messages_taken_total[5m]))", "{{message}}"),)
            ),
            Panel(
                "Messages refused",
                "cps",
                (("sum by (reason) (rate(sublet_messages_refused_total[5m]))", "{{reason}}"),),
            ),
            Panel(
                "Messages lost before a handler",
                "cps",
                (("sum by (reason) (rate(sublet_messages_dropped_total[5m]))", "{{reason}}"),),
            ),
        ),
    ),
    Board(
        "evictions",
        "Sublet: evictions",
        (
            Panel("Evictions by phase", "cps", (("sum by (phase) (sublet:evictions:rate10m)", "{{phase}}"),)),
            Panel(
                "From pressure to each step, 99th percentile",
                "s",
                ((p99("sublet_eviction_latency_seconds", "stage"), "{{stage}}"),),
            ),
            Panel("Events that wait to be stored", "short", (("sum(sublet_outbox_messages)", "events"),)),
            Panel("Messages in the streams", "short", (("sum by (stream) (sublet_stream_messages)", "{{stream}}"),)),
            Panel("Size of the streams", "bytes", (("sum by (stream) (sublet_stream_bytes)", "{{stream}}"),)),
            Panel(
                "Delivered by bridges",
                "cps",
                (("sum by (outcome) (rate(sublet_bridge_events_total[5m]))", "{{outcome}}"),),
            ),
        ),
    ),
    Board(
        "cluster",
        "Sublet: the cluster's half",
        (
            Panel(
                "Scheduler extender, 99th percentile", "s", ((p99("sublet_extender_call_seconds", "verb"), "{{verb}}"),)
            ),
            Panel(
                "Why nodes were refused",
                "cps",
                (("sum by (rule) (rate(sublet_extender_refusals_total[5m]))", "{{rule}}"),),
            ),
            Panel("Pods behind the gate", "short", (("sum(sublet_gate_waiting_pods)", "waiting"),)),
            Panel("Webhook, 99th percentile", "s", ((p99("sublet_central_pod_review_seconds", "kind"), "{{kind}}"),)),
            Panel(
                "Metrics API, 99th percentile",
                "s",
                ((p99("sublet_metrics_api_request_seconds", "group"), "{{group}}"),),
            ),
            Panel("Series of the metrics API", "short", (("sum(sublet_metrics_api_series)", "series"),)),
            Panel("Decisions by area", "cps", (("sum by (area) (rate(sublet_decisions_total[5m]))", "{{area}}"),)),
        ),
    ),
)


def drawn(board: Board) -> dict[str, Any]:
    """The board as Grafana imports it."""
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": f"sublet-{board.name}",
        "title": board.title,
        "tags": ["sublet"],
        "timezone": "browser",
        "refresh": "30s",
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_panel(number, panel) for number, panel in enumerate(board.panels)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    place = {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT}
    targets = [
        {"refId": chr(ord("A") + at), "datasource": DATASOURCE, "expr": expr, "legendFormat": legend}
        for at, (expr, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "datasource": DATASOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
    }


def text(board: Board) -> str:
    """What the board's file holds."""
    return json.dumps(drawn(board), indent=1) + "\n"


if __name__ == "__main__":
    BOARDS.mkdir(parents=True, exist_ok=True)
    for one in ALL:
        (BOARDS / f"{one.name}.json").write_text(text(one))
