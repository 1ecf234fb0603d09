"""A cluster in one line a node, from its API server's objects alone."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import cluster_case as case
import pytest
from test_doctor_kube import AtNoon, Server
from told_cluster import CONFIGS, LEASE, NODE_OBJECTS, PRESSURE, READING, offering, served
from typer.testing import CliRunner

from shared.errors import Refused, Unavailable
from sublet import cli
from sublet.cluster import options
from sublet.cluster.reading import ClusterReading, read_cluster, read_node_objects
from sublet.commands import get, status
from sublet.views.cluster.table import as_json, node_table, render


def test_one_line_a_node_who_leads_and_what_became_of_configuration() -> None:
    assert render(READING).splitlines() == [
        "NODE   CPU    MEMORY    ON-NODE   AGENT                VERSION          SAID     TAINTS",
        "gone   -      -         -         WithAgentsNotReady   -                1s ago   -",
        "n1     2.00   4.0 GiB   1.50      ready                0.1.0+0123abcd   1s ago   -",
        f"n2     -      -         0.00      -                    -                -        {PRESSURE}",
        "",
        "central: central-1 leads, renewed 1s ago",
        "",
        "CONFIG                  NAME          VALID   NODES   MESSAGE",
        "EvictionConfiguration   default/mem   False   2/3     threshold 70: at most 60",
        "AdminQoSConfiguration   default/new   -       -       -",
    ]


def test_what_is_not_told_is_null_and_not_zero() -> None:
    told = {row["node"]: row for row in as_json(READING)["nodes"]}
    assert told["n2"]["reclaimed_cpu_millis"] is None
    assert told["n2"]["node_cpu_millis"] == 0
    assert told["n1"]["reclaimed_cpu_millis"] == 2000
    assert told["n1"]["reclaimed_memory_bytes"] == 4 << 30
    assert told["n2"]["agent"] is None
    assert [told[name]["version"] for name in ("n1", "n2")] == ["0.1.0", None]


def test_nobody_leads_and_no_nodes_are_said() -> None:
    empty = ClusterReading(case.NOW, [], [], None, [])
    assert render(empty) == "no nodes\n\ncentral: nobody leads"


def test_node_objects_alone_say_nothing_of_what_nodes_show() -> None:
    assert node_table([offering("n1", millicpu="2k")], datetime(2026, 11, 22, 1, 0, tzinfo=UTC)).splitlines() == [
        "NODE   CPU    MEMORY   AGENT   VERSION   SAID     TAINTS",
        "n1     2.00   -        ready   -         1s ago   -",
    ]


def test_a_cluster_is_read_with_the_kind_of_every_object() -> None:
    reading = asyncio.run(read_cluster(Server(served()), AtNoon(), case.SYSTEM))
    assert [one["kind"] for one in reading.configs] == ["EvictionConfiguration"]
    assert [one["metadata"]["name"] for one in reading.nodes] == ["n2", "n1"]
    assert reading.lease is not None


def test_nobody_has_ever_led() -> None:
    found = served()
    del found[LEASE]
    assert asyncio.run(read_cluster(Server(found), AtNoon(), case.SYSTEM)).lease is None


@pytest.mark.parametrize("path", [NODE_OBJECTS, f"{CONFIGS}/katalystcustomconfigs"])
def test_a_cluster_without_the_kinds_is_told_to_be_without_sublet(path: str) -> None:
    found = served()
    del found[path]
    with pytest.raises(Refused, match="not installed there"):
        asyncio.run(read_cluster(Server(found), AtNoon(), case.SYSTEM))


def test_one_node_is_read_without_the_record_of_its_writers() -> None:
    assert asyncio.run(read_node_objects(Server(served()), "n1"))[0]["metadata"] == {"name": "n1"}
    with pytest.raises(Refused, match="node n9"):
        asyncio.run(read_node_objects(Server(served()), "n9"))
    with pytest.raises(Unavailable):
        asyncio.run(read_node_objects(Server({}, away=True), "n1"))


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Server:
    """`kubectl sublet` on a machine without a bus."""
    server = Server(served())
    monkeypatch.setattr("sys.argv", ["kubectl-sublet"])
    monkeypatch.setattr("sublet.cluster.way.require_way", lambda _asked: None)
    monkeypatch.setattr("sublet.cluster.way.open_kube", lambda _way: server)
    monkeypatch.delenv("SUBLET_NATS_URL", raising=False)
    return server


def run(*words: str) -> Any:
    return CliRunner().invoke(cli.build({"status": status, "get": get}), list(words))


def test_the_plugin_shows_the_cluster(plugin: Server) -> None:
    assert run("status").stdout.startswith("NODE")
    assert [row["node"] for row in json.loads(run("status", "-o", "json").stdout)["nodes"]] == ["gone", "n1", "n2"]
    assert run("get", "node").stdout.splitlines()[1].startswith("n1 ")
    assert json.loads(run("get", "cnr", "n1", "-o", "json").stdout)["metadata"]["name"] == "n1"
    assert len(json.loads(run("get", "kcnr", "-o", "json").stdout)["items"]) == 2
    assert "kubectl get" in str(run("get", "pods").exception)


def test_who_names_a_bus_means_the_services(plugin: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert options.cluster_meant(False, None)
    monkeypatch.setenv("SUBLET_NATS_URL", "nats://127.0.0.1:1")
    assert not options.cluster_meant(False, None)
    assert options.cluster_meant(True, None)


def test_sublet_itself_means_this_host_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["sublet"])
    assert not options.cluster_meant(False, None)
    assert options.cluster_meant(True, None)
