"""`sublet whatif nodes-lost`: the question is read from the cluster, and told in words."""

import json
from typing import Any

import cluster_case as case
import pytest
from test_doctor_kube import Server, items
from told_cluster import NODE_OBJECTS, offering
from typer.testing import CliRunner

from sublet import cli
from sublet.commands import sim, whatif

RECLAIMED = {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"}


def cluster_node(name: str) -> dict[str, Any]:
    made = case.named(name, labels={"node.kubernetes.io/pool": "green"})
    return {**made, "metadata": {**made["metadata"], "uid": f"uid-{name}"}}


def reporting(name: str) -> dict[str, Any]:
    """The object of a node whose agent reports."""
    made = offering(name)
    return {**made, "metadata": {**made["metadata"], "uid": f"cnr-{name}"}}


def pod(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"0{name[-1]}", "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running"}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Ten nodes with an agent and one without; each answers with two reclaimed pods and a tenant."""
    names = [f"n{number}" for number in range(10)]
    server = Server({
        "/api/v1/nodes": items(*(cluster_node(name) for name in (*names, "bare"))),
        NODE_OBJECTS: items(*(reporting(name) for name in names)),
        "/api/v1/pods": items(pod("a1", RECLAIMED), pod("b2", RECLAIMED), pod("c3", {})),
    })  # fmt: skip
    monkeypatch.setattr("sublet.cluster.way.require_way", lambda _asked: None)
    monkeypatch.setattr("sublet.cluster.way.open_kube", lambda _way: server)
    return server


def run(*words: str) -> Any:
    return CliRunner().invoke(cli.build({"whatif": whatif, "sim": sim}), ["whatif", *words])


def test_one_node_is_told_from_the_first_silence_to_the_last_pod(cluster: Server) -> None:
    lines = run("nodes-lost", "--node", "n3").stdout.splitlines()
    assert lines[0] == "1 of 10 nodes fall silent now, their agents dead and the nodes alive:"
    assert "no pod is touched (n3)" in lines[1]
    assert "n3 is tainted" in lines[2]
    assert "2 reclaimed pods of n3 are evicted" in lines[3]
    assert "1 withdrawn, 1 tainted, 2 reclaimed pods evicted, 0 kept" in lines[-1]


def test_many_pause_and_no_pod_goes(cluster: Server) -> None:
    words = [word for number in range(5) for word in ("--node", f"n{number}")]
    told = json.loads(run("nodes-lost", *words, "-o", "json").stdout)
    assert [moment["what"] for moment in told["moments"]] == ["paused", "withdrawn"]
    assert (told["evicted_pods"], told["kept_pods"]) == (0, 10)


def test_agents_that_are_ready_keep_their_pods(cluster: Server) -> None:
    assert " 0 reclaimed pods evicted" in run("nodes-lost", "--node", "n1", "--agents-ready").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nodes-lost", "--node", "bare"), "no node bare among the 10 that are known: see sublet nodes"),
        (("nodes-lost", "--node", "nowhere"), "no node nowhere"),
    ],
)
def test_a_node_that_is_not_there_is_named(cluster: Server, words: tuple[str, ...], said: str) -> None:
    assert said in str(run(*words).exception)


def test_nodes_are_for_this_question_alone(cluster: Server) -> None:
    assert "--node is for nodes-lost" in run("taint_of", "--node", "n1").output
