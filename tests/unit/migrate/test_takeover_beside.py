"""Two agents in one cluster: whether they write the same."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from shared.adapters.kube.client import Document, Kube, KubeError
from sublet.doctor.finding import examine
from sublet.migrate.labels import BACK, TAKEOVER
from sublet.migrate.takeover.beside import BESIDE_CHECKS, BesideFacts
from sublet.migrate.takeover.cluster import KubeHandover
from sublet.migrate.takeover.origin import ORIGINS
from sublet.migrate.takeover.preparations import NAME, PRIORITY


def node(manager: str = "koord-manager", name: str = "batch-cpu", **labels: str) -> dict[str, Any]:
    written: dict[str, Any] = {"f:status": {"f:allocatable": {f"f:kubernetes.io/{name}": {}}}}
    entries = [{"manager": manager, "fieldsV1": written}]
    status = {"allocatable": {f"kubernetes.io/{name}": "1k"}}
    return {"metadata": {"name": "n1", "labels": labels, "managedFields": entries}, "status": status}


def cnr(*conditions: str) -> dict[str, Any]:
    rows = [{"type": name, "status": "True"} for name in conditions]
    return {"metadata": {"name": "n1"}, "status": {"conditions": rows}}


def config(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "sublet-system", "uid": name}, "spec": spec}


def taken(mode: str, **said: Any) -> dict[str, Any]:
    """One of the two objects that taking nodes over makes, as it says of those that are given back."""
    selector = f"{TAKEOVER}={BACK}"
    return config(
        f"{NAME}-{mode}", nodeLabelSelector=selector, priority=PRIORITY, config={**said, "sublet": {"mode": mode}}
    )


OURS, RESOURCES = "sublet-reporter", "batch and mid resources"
DRY: dict[str, Any] = {"evictionConfig": {"dryRun": ["*"]}}
EVERYWHERE = config("all", config=DRY)
GOOD = BesideFacts(
    ORIGINS["koordinator"], "sublet-system", "values.yaml", installed=True, hosts=frozenset({"n1"}), nodes=[node()],
    node_objects=[cnr("ServicesReady", "Observing")],
)  # fmt: skip


def verdicts(facts: BesideFacts) -> dict[str, str]:
    return {row.check: row.finding.verdict for row in examine("cluster", BESIDE_CHECKS, facts)}


def test_both_beside_each_other_are_well_while_ours_observes() -> None:
    assert set(verdicts(GOOD).values()) == {"ok"}


@pytest.mark.parametrize(
    ("facts", "check", "verdict", "fix"),
    [
        (replace(GOOD, hosts=frozenset()), "other agent", "warning", "nothing to move from"),
        (
            replace(GOOD, installed=False, node_objects=[]),
            "Sublet",
            "warning",
            "helm install sublet deploy/k8s/chart -n sublet-system -f values.yaml --set mode=observe",
        ),
        (replace(GOOD, node_objects=[]), "modes", "not checked", "kubectl get kcnr"),
        (replace(GOOD, node_objects=[cnr("ServicesReady")]), "modes", "problem", "--set mode=observe"),
        (replace(GOOD, nodes=[node(OURS)]), RESOURCES, "problem", "set reporter.batch.enabled=false and slo"),
        (
            replace(GOOD, nodes=[node(OURS, "mid-memory")]),
            RESOURCES,
            "problem",
            "set reporter.mid.enabled=false and slo",
        ),
        (replace(GOOD, configs=[taken("observe"), EVERYWHERE]), "config objects", "warning", "takeover --all --apply"),
        (replace(GOOD, origin=ORIGINS["katalyst"]), "modes", "problem", "sublet migrate katalyst plan"),
    ],
)
def test_what_both_write_is_a_problem_with_its_next_step(
    facts: BesideFacts, check: str, verdict: str, fix: str
) -> None:
    found = next(row.finding for row in examine("cluster", BESIDE_CHECKS, facts) if row.check == check)
    assert found.verdict == verdict
    assert fix in found.fix


def test_a_node_that_is_ours_may_have_our_amounts() -> None:
    facts = replace(GOOD, nodes=[node("sublet-reporter", **{TAKEOVER: "done"})])
    assert verdicts(facts)[RESOURCES] == "ok"


def test_config_objects_that_say_what_is_said_for_all_are_well() -> None:
    assert verdicts(replace(GOOD, configs=[taken("observe", **DRY), EVERYWHERE]))["config objects"] == "ok"


def test_a_cluster_without_either_is_told_apart() -> None:
    class Empty(Kube):
        async def call(self, method: str, path: str, **_: Any) -> Document:
            raise KubeError(f"{method} {path}", 404, {"message": "no"})

    facts = asyncio.run(KubeHandover(Empty(), ORIGINS["koordinator"], "x").beside("v.yaml"))
    assert (facts.installed, facts.hosts, list(facts.views())) == (False, frozenset(), [])
