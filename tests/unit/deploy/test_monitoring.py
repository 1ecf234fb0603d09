"""Rules, boards, runbooks and the page of metrics agree with what the processes export."""

import re
from typing import Any

import pytest
from monitoring_rules import GROUPS, ROOT, boards, queries
from prometheus_client.metrics import MetricWrapperBase

from shared import telemetry
from sublet.settings_page.metrics import description, exported, metric_name, metrics_page

ALERTS: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"] if "alert" in rule]
RECORDED = {rule["record"] for group in GROUPS for rule in group["rules"] if "record" in rule}
RUNBOOK = ["Meaning", "Impact", "Diagnosis", "Mitigation", "When it is over", "Silence"]
OF_HISTOGRAMS = ("_bucket", "_count", "_sum")
OF_THE_CHART = {"sublet:core_hour_price"}
OF_THE_SAMPLE = {
    "sublet_node_cpus": set(), "sublet_node_cpu_usage_cores": set(), "sublet_pool_cpu_usage_cores": {"pool"},
}  # fmt: skip
"""Gauges of metrics' last sample that queries ask for; a real Prometheus sees them too."""


LABELS: dict[str, set[str]] = {metric_name(metric): set(metric._labelnames) for metric in exported()}


@pytest.mark.parametrize(("name", "expr"), list(queries()))
def test_a_query_asks_for_metrics_and_labels_that_are_exported(name: str, expr: str) -> None:
    for series, braces in re.findall(r"\b(sublet[_:][a-z0-9_:]+)(\{[^}]*\})?", expr):
        if series in RECORDED | OF_THE_CHART:
            continue
        metric = next((series.removesuffix(end) for end in OF_HISTOGRAMS if series.endswith(end)), series)
        own = OF_THE_SAMPLE.get(metric, LABELS.get(metric))
        assert own is not None, f"{name}: no process exports {series}"
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", braces or ""))
        assert asked <= own | {"le"}, f"{name}: {series} has no label {asked - own}"


def test_there_are_enough_alerts_and_each_is_tested_and_has_its_page() -> None:
    tested = (ROOT / "tests/monitoring/alerts.yaml").read_text()
    index = (ROOT / "docs/monitoring.md").read_text()
    assert len(ALERTS) >= 15
    for alert in ALERTS:
        name = alert["alert"]
        assert f'alertname="{name}",alertstate="firing"' in tested, name
        assert f"alertname: {name}, exp_alerts: []" in tested, name
        assert f"| [{name}](runbooks/{name}.md) | {alert['labels']['severity']} | {alert['for']} |" in index
        assert alert["labels"]["severity"] in ("warning", "critical")
        text = (ROOT / alert["annotations"]["runbook"]).read_text()
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == RUNBOOK, name
        assert alert["expr"] in text, f"{name}: its page says another condition"
    pages = {path.stem for path in (ROOT / "docs/runbooks").iterdir()}
    assert pages == {alert["alert"] for alert in ALERTS}


def test_the_boards_are_those_of_the_table() -> None:
    assert {path.name for path in boards.BOARDS.iterdir()} == {f"{board.name}.json" for board in boards.ALL}
    for board in boards.ALL:
        assert (boards.BOARDS / f"{board.name}.json").read_text() == boards.text(board), "run deploy/k8s/boards.py"


def test_the_page_of_metrics_is_that_of_the_code() -> None:
    assert (ROOT / "docs/metrics.md").read_text() == metrics_page(), "run make settings"


def test_every_metric_is_written_by_somebody() -> None:
    folders = [ROOT / name for name in ("services", "shared", "sublet")]
    code = "\n".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    names = {name for name, value in vars(telemetry).items() if isinstance(value, MetricWrapperBase)}
    assert {name for name in names if f"telemetry.{name}" not in code} == {"BUILD_INFO"}  # set where it is made


def test_no_label_holds_a_name_that_tenants_choose() -> None:
    """Their number has no bound (docs/facts/safety-rules.md#names-of-metrics)."""
    for name, labels in LABELS.items():
        assert not labels & {"pod", "namespace", "container", "uid", "owner", "node"}, name


def test_names_follow_the_rules_of_prometheus() -> None:
    for metric in exported():
        name = metric_name(metric)
        assert re.fullmatch(r"sublet_[a-z0-9_]+", name)
        assert not re.search(r"_(ms|millis|percent|gib|mb|minutes|hours)(_|$)", name), f"{name}: base units"
        assert description(metric).documentation.endswith("."), name
