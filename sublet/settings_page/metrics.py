"""`metrics_page` lists every metric that Sublet exports: name, type, labels and meaning."""

import sys
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from shared import telemetry

HEAD = """# Metrics

Every process answers `/metrics` on its HTTP port (`http_port`; 8080 in a cluster). `make settings` generates this page
from `shared/telemetry.py`. No label in it holds the name of a pod or a tenant, so the number of series is bounded.
How to scrape them, rules, alerts and boards: [monitoring.md](monitoring.md).

Beside these, metrics shows its last sample as gauges, a figure that is missing in it has no series: `sublet_node_*`
(`sublet_node_cpus`, `sublet_node_cpu_usage_cores`, `sublet_node_memory_free_bytes`, …), `sublet_numa_*{numa}`,
`sublet_pool_*{pool}` (`sublet_pool_cpu_usage_cores`, …), and of at most 256 pods `sublet_pod_*{namespace,pod}`;
`sublet_pods_left_out` counts pods beyond that. `sublet_sample_age_seconds` says how old they all are.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def exported() -> Iterator[MetricWrapperBase]:
    """The metrics that `shared.telemetry` defines, in order of their names."""
    found = {value for value in vars(telemetry).values() if isinstance(value, MetricWrapperBase)}
    return iter(sorted(found, key=metric_name))


def metric_name(metric: MetricWrapperBase) -> str:
    """The name under which Prometheus stores it: counters end in `_total`."""
    described = description(metric)
    return str(described.name) + ("_total" if described.type == "counter" else "")


def description(metric: MetricWrapperBase) -> Metric:
    """Name, type and sentence of a metric, without its values."""
    return next(iter(metric.describe()))


def metrics_page() -> str:
    """The page `docs/metrics.md`."""
    rows = [_row(metric) for metric in exported()]
    return HEAD + "\n".join(rows) + "\n"


def _row(metric: MetricWrapperBase) -> str:
    described = description(metric)
    labels = ", ".join(f"`{label}`" for label in metric._labelnames)
    return f"| `{metric_name(metric)}` | {described.type} | {labels or '-'} | {described.documentation} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(metrics_page())
    print(sys.argv[1])
