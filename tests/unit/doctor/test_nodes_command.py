"""`sublet nodes`: chosen, sorted and watched; and many nodes on one screen of `sublet status`."""

import dataclasses
import json
from functools import partial
from itertools import islice
from typing import Any

import cluster_case as case
import pytest
from test_doctor_kube import Server
from told_cluster import READING, offering, served
from typer.testing import CliRunner

from shared.errors import Refused
from sublet import cli
from sublet.cluster.reading import ClusterReading
from sublet.commands import nodes, status
from sublet.pods.label_selector import admits, read_selector
from sublet.views.cluster.selection import NodeChoice, chosen_rows, watched_lines
from sublet.views.cluster.table import render


def many(count: int, ill: int = 0) -> ClusterReading:
    """A cluster whose first few nodes have an agent that is not well."""
    objects = [offering(f"n{i:03}", ready="False" if i < ill else "True", millicpu=f"{i}k", memory="1Gi")
               for i in range(count)]  # fmt: skip
    told = [case.named(f"n{i:03}", labels={"pool": f"p{i % 2}"}) for i in range(count)]
    return dataclasses.replace(READING, nodes=told, node_objects=objects, configs=[])


def names(reading: ClusterReading, **choice: Any) -> list[str]:
    return [row["node"] for row in chosen_rows(reading, NodeChoice(**choice))]


def test_what_is_largest_comes_first_and_what_is_not_known_last() -> None:
    assert names(READING) == ["gone", "n1", "n2"]
    assert names(READING, sort="cpu") == ["n1", "gone", "n2"]
    assert names(many(3), sort="cpu") == ["n002", "n001", "n000"]
    assert names(many(3), sort="cpu", reverse=True) == ["n000", "n001", "n002"]
    assert names(many(3), sort="agent") == ["n000", "n001", "n002"]


def test_nodes_are_chosen_by_name_label_and_trouble() -> None:
    assert names(many(4), names=("n002",)) == ["n002"]
    assert names(many(4), admits=partial(admits, read_selector("pool=p1"))) == ["n001", "n003"]
    assert names(many(4, ill=1), not_ready=True) == ["n000"]
    assert names(READING, not_ready=True) == ["gone", "n2"]
    with pytest.raises(Refused, match="no node n9, n99: see sublet nodes"):
        names(many(4), names=("n9", "n001", "n99"))


def test_a_watch_tells_the_table_and_then_what_changes() -> None:
    readings = iter([many(3), many(3), many(3, ill=1), many(2, ill=1)])
    lines = list(islice(watched_lines(lambda: next(readings), NodeChoice(), lambda: None, wide=False), 3))
    assert [line.split()[0] for line in lines[0].splitlines()] == ["NODE", "n000", "n001", "n002"]
    assert lines[1].split()[0] == "n000"
    assert "WithAgentsNotReady" in lines[1]
    assert lines[2] == "node/n002 is not among them any more"


def test_many_nodes_fit_one_screen() -> None:
    lines = render(many(1000, ill=12)).splitlines()
    assert lines[:4] == [
        "nodes:    1000, 988 well, 12 not; 10 of them below, all: sublet nodes --not-ready",
        "agents:   988 ready, 12 WithAgentsNotReady",
        "versions: 1000 unknown",
        "offer:    499500.00 CPUs, 1000.0 GiB; withdrawn on 0, tainted 0",
    ]
    assert len(lines) < 24
    assert "n009" in "\n".join(lines)
    assert "n010" not in "\n".join(lines)
    assert "n012" not in render(many(1000))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server(served())
    monkeypatch.setattr("sublet.cluster.way.require_way", lambda _asked: None)
    monkeypatch.setattr("sublet.cluster.way.open_kube", lambda _way: server)
    return server


def run(*words: str) -> Any:
    return CliRunner().invoke(cli.build({"nodes": nodes, "status": status}), ["nodes", *words])


def test_the_command_prints_every_form(cluster: Server) -> None:
    assert run().stdout.splitlines()[1].startswith("gone ")
    assert run("-o", "wide").stdout.splitlines()[0].split()[-3:] == ["POOL", "ZONE", "WITHDRAWN"]
    assert run("-o", "name", "--sort", "cpu").stdout.split() == ["node/n1", "node/gone", "node/n2"]
    assert json.loads(run("n1", "-o", "json").stdout)["reclaimed_cpu_millis"] == 2000
    assert [row["node"] for row in json.loads(run("-o", "json").stdout)] == ["gone", "n1", "n2"]
    assert run("-l", "pool=none").stdout == "no nodes\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sort", "size"), "--sort 'size': want name, cpu"),
        (("--every", "0"), "--every 0: want 1 to 3600 s"),
        (("-w", "-o", "json"), "--watch prints lines"),
        (("nowhere",), "no node nowhere"),
    ],
)
def test_what_cannot_be_done_is_said(cluster: Server, words: tuple[str, ...], said: str) -> None:
    assert said in str(run(*words).exception)
