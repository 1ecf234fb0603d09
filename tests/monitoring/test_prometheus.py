"""A real Prometheus scrapes a simulated node with central, and is asked every query of rules and boards."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from monitoring_rules import GROUPS, ROOT, RULES, boards, queries
from rig_parts import until
from slow_machines import patience_s

pytestmark = [pytest.mark.monitoring, pytest.mark.timeout(240)]
PATIENCE_S = 120.0
PROCESSES = 7
"""Of `sublet up` on a simulated machine: the simulator answers nothing."""
HEALTHY = {
    "sublet_pool_cpus", "sublet_node_cpu_reclaimable_cores", "sublet_central_nodes", "sublet_bus_connected",
    "sublet_step_duration_seconds_bucket", "sublet_stream_messages", "sublet_build_info", "sublet_messages_taken_total",
}  # fmt: skip


def free_ports(count: int) -> int:
    """The first of as many ports in a row that nobody listens on."""
    for first in range(23_000, 60_000, 50):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError("no free ports")


class Monitored:
    """A node, and the Prometheus that scrapes it."""

    def __init__(self, folder: Path) -> None:
        self.folder, port = folder, free_ports(PROCESSES + 1)
        state = {"SUBLET_STATE_DIR": str(folder / "state")}
        self.node = self._start([sys.executable, "-m", "sublet", "up", "--substrate", "sim", "--scenario", "tide",
                                 "--nats-port", "0", "--http-port", str(port)], state)  # fmt: skip
        targets = [f"127.0.0.1:{number}" for number in range(port, port + PROCESSES)]
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES), str(folder / "price.yaml")],
            "scrape_configs": [
                {"job_name": "sublet", "static_configs": [{"targets": targets, "labels": {"component": "node"}}]}
            ],
        }
        price = {"groups": [{"name": "price", "rules": [{"record": "sublet:core_hour_price", "expr": "vector(0.04)"}]}]}
        (folder / "price.yaml").write_text(yaml.safe_dump(price))
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        self.port = port + PROCESSES
        self.prometheus = self._start(["prometheus", f"--config.file={folder}/prometheus.yaml",
                                       f"--storage.tsdb.path={folder}/tsdb",
                                       f"--web.listen-address=127.0.0.1:{self.port}"], {})  # fmt: skip

    def _start(self, command: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, env=os.environ | env, stdout=log, stderr=log)

    def ask(self, expr: str) -> list[dict[str, Any]]:
        """The series that an expression gives now."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?{urllib.parse.urlencode({'query': expr})}"
        with urllib.request.urlopen(url, timeout=patience_s(10)) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found

    def wait_for(self, expr: str) -> None:
        """Wait until an expression gives a series."""

        def given() -> bool:
            with contextlib.suppress(OSError):  # it is about to listen
                return bool(self.ask(expr))
            return False

        until(given, PATIENCE_S, f"a series of {expr}")

    def end(self) -> None:
        """End both, the node in order."""
        self.node.terminate()
        self.node.wait(patience_s(60))
        self.prometheus.terminate()
        self.prometheus.wait(patience_s(20))


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    """A node that has been scraped."""
    found = Monitored(tmp_path_factory.mktemp("monitored"))
    try:
        for series in sorted(HEALTHY):
            found.wait_for(series)
        yield found
    finally:
        found.end()


def test_every_alert_fires_on_its_series_and_on_no_other() -> None:
    subprocess.run(["promtool", "test", "rules", "alerts.yaml"], cwd=ROOT / "tests/monitoring", check=True)


def test_every_query_of_rules_and_boards_is_answered(monitored: Monitored) -> None:
    for _, expr in queries():
        monitored.ask(expr)  # what is no query is answered with status 400, which is raised


def test_what_managers_ask_has_its_series(monitored: Monitored) -> None:
    for rule in (rule for group in GROUPS for rule in group["rules"] if "record" in rule):
        if "evictions" not in rule["record"]:
            monitored.wait_for(rule["record"])
    monitored.wait_for("max_over_time(sublet:reclaimable_cores:sum[10m]) > 0")


NOT_OF_A_NODE = {
    "bridge_events": "a bridge is started by whoever wants webhooks",
    "messages_refused": "nobody sends what would be refused",
    "messages_dropped": "nothing is lost",
    "event_loop_scheduling": "a simulated machine has no deadline to keep",
}
"""What a healthy node alone has no series for."""


def test_every_panel_about_nodes_shows_data_but_for_what_a_healthy_node_does_not_have(monitored: Monitored) -> None:
    monitored.wait_for('sublet_evictions_total{phase="created"} > 0')
    asked = [expr for board in boards.ALL if board.name != "cluster" for one in board.panels for expr, _ in one.queries]
    left_out = {part: [expr for expr in asked if part in expr] for part in NOT_OF_A_NODE}
    assert all(left_out.values()), left_out
    for expr in asked:
        if not any(part in expr for part in NOT_OF_A_NODE):
            monitored.wait_for(expr)


def test_batch_work_makes_the_machine_busier(monitored: Monitored) -> None:
    monitored.wait_for("max_over_time(sublet:utilization_gained:ratio[10m]) > 0.05")
    monitored.wait_for("sublet:utilization:ratio > sublet:utilization_without_batch:ratio")


def test_an_eviction_is_seen(monitored: Monitored) -> None:
    monitored.wait_for('sublet_evictions_total{phase="created"} > 0')
    monitored.wait_for("sublet_eviction_latency_seconds_bucket")


def test_a_node_at_work_raises_no_alert_but_for_what_was_not_started(monitored: Monitored) -> None:
    firing = {alert["metric"]["alertname"] for alert in monitored.ask('ALERTS{alertstate="firing"}')}
    assert firing == set()
