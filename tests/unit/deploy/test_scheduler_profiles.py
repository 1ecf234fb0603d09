"""The stock scheduler's profiles: what kube-scheduler reads of them, and that the node with most left goes first."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.contracts.pod import ALIASES, BATCH_ALIASES, MID_CPU, MID_MEMORY

K8S = Path(__file__).parents[3] / "deploy/k8s"
Document = dict[str, Any]

SCORED = {"cpu", "memory", MID_CPU, MID_MEMORY, *ALIASES, *ALIASES.values(), *BATCH_ALIASES, *BATCH_ALIASES.values()}
FIELDS = {
    "": {"apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "enableProfiling", "profiles",
         "enableContentionProfiling", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
         "extenders", "delayCacheUntilActive"},
    "profile": {"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"},
    "plugin": {"name", "args"},
    "args": {"apiVersion", "kind", "ignoredResources", "ignoredResourceGroups", "scoringStrategy"},
    "strategy": {"type", "resources", "requestedToCapacityRatio"},
}  # fmt: skip
"""Of kubescheduler.config.k8s.io/v1: kube-scheduler does not start with a field that it does not know
(docs/facts/kubernetes.md#scheduling-by-what-is-left)."""


def delivered() -> Document:
    found: Document = yaml.safe_load((K8S / "scheduler/profile.yaml").read_text())
    return found


def of_the_chart(overlay: str = "default") -> Document:
    (config,) = [
        one
        for folder in ("base", f"overlays/{overlay}")
        for one in yaml.safe_load_all((K8S / folder / "sublet.yaml").read_text())
        if one["kind"] == "ConfigMap" and one["metadata"]["name"] == "sublet-scheduler"
    ]
    found: Document = yaml.safe_load(config["data"]["scheduler.yaml"])
    return found


@pytest.mark.parametrize("document", [delivered(), of_the_chart()], ids=["delivered", "chart"])
def test_a_stock_scheduler_knows_every_field(document: Document) -> None:
    assert (document["apiVersion"], document["kind"]) == (
        "kubescheduler.config.k8s.io/v1",
        "KubeSchedulerConfiguration",
    )
    assert document.keys() <= FIELDS[""]
    for profile in document["profiles"]:
        assert profile.keys() <= FIELDS["profile"]
        for plugin in profile.get("pluginConfig", ()):
            assert plugin.keys() <= FIELDS["plugin"]
            assert plugin["name"] == "NodeResourcesFit"
            assert plugin["args"].keys() <= FIELDS["args"]
            assert plugin["args"]["scoringStrategy"].keys() <= FIELDS["strategy"]


@pytest.mark.parametrize("name", ["katalyst-scheduler", "koord-scheduler"])
def test_a_pod_that_names_a_dialects_scheduler_goes_where_most_of_what_it_asks_for_is_left(name: str) -> None:
    for document in (delivered(), of_the_chart()):
        (profile,) = [one for one in document["profiles"] if one["schedulerName"] == name]
        (plugin,) = profile["pluginConfig"]
        strategy = plugin["args"]["scoringStrategy"]
        assert strategy["type"] == "LeastAllocated"
        assert {row["name"] for row in strategy["resources"]} == SCORED
        assert len(strategy["resources"]) == len(SCORED)
        assert {row["weight"] for row in strategy["resources"]} == {1}


def test_the_clusters_own_profile_stays_as_it_is() -> None:
    assert delivered()["profiles"][0] == {"schedulerName": "default-scheduler"}
    assert [one["schedulerName"] for one in of_the_chart()["profiles"]] == ["katalyst-scheduler", "koord-scheduler"]
