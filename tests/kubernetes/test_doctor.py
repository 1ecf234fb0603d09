"""`sublet doctor` on a real cluster and its node, and `kubectl sublet` by a real kubectl. Sublet need not be there."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from doctor_command import Found, asked, doctor
from kube_rig.cluster import Cluster
from slow_machines import patience_s

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

CHECKOUT = Path(__file__).parents[2]
NOWHERE = "doctor-nowhere"
"""A namespace that nobody makes: whatever else is installed is not Sublet there."""


def of_cluster(kubeconfig: Path) -> tuple[int, Found]:
    return asked(doctor("--cluster", "--kubeconfig", str(kubeconfig), "--namespace", NOWHERE))


def verdicts(found: Found, *checks: str) -> dict[str, str]:
    return {check: found[check]["verdict"] for check in checks}


def test_a_cluster_in_which_sublet_may_be_installed(cluster: Cluster) -> None:
    code, found = of_cluster(cluster.admin)
    good = ("API server", "your rights", "validating policies", "nodes", "other systems")
    assert verdicts(found, *good) == dict.fromkeys(good, "ok")
    absent = ("agents", "agents' rights", "central", "bus", "events", "node objects")
    assert verdicts(found, *absent) == dict.fromkeys(absent, "not checked")
    assert "node-1" not in found["kubelets"]["said"], "other tests' nodes have no kubelet that could be asked"
    assert found["namespace"]["verdict"] == "warning"
    assert f"kubectl create namespace {NOWHERE}" in found["namespace"]["fix"]
    assert code == 0, found


def test_who_may_nothing_is_told_so_and_nothing_passes_for_good(cluster: Cluster) -> None:
    code, found = of_cluster(cluster.client("doctor-nobody"))
    assert code == 1
    assert found["your rights"]["verdict"] == "not checked" or "you may not" in found["your rights"]["said"]
    assert {check for check, row in found.items() if row["verdict"] == "ok"} <= {"API server", "mutating policies"}
    assert "list" in found["nodes"]["said"]


def test_its_node(cluster: Cluster) -> None:
    _, found = asked(cluster.node.isolation.command(doctor("--node")))
    good = ("kernel", "cgroups", "writable cgroups", "kubelet's driver", "pods' groups", "pods' cpusets", "CPU manager")
    assert verdicts(found, *good) == dict.fromkeys(good, "ok")
    assert found["kubelet's driver"]["said"] == "cgroupfs"
    assert "kubepods" in found["pods' groups"]["said"]


@pytest.fixture
def plugin(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """kubectl, which finds the plugin on its way."""
    program = tmp_path / "kubectl-sublet"
    program.write_text(f"#!{sys.executable}\nfrom sublet.cli import main\nmain()\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    return lambda *words: cluster.kubectl("sublet", *words)


def test_kubectl_sublet(plugin: Callable[..., str]) -> None:
    assert plugin("status", "--help").startswith("Usage: kubectl sublet status")
    found = json.loads(plugin("doctor", "--namespace", NOWHERE, "--output", "json"))["findings"]
    assert {row["place"] for row in found} == {"cluster"}


def test_kubectl_sublet_shows_nodes_without_a_bus(cluster: Cluster, plugin: Callable[..., str]) -> None:
    kinds, there = str(CHECKOUT / "deploy/k8s/crds"), bool(cluster.get("crd")["items"])
    try:
        if not there:
            cluster.kubectl("apply", "--server-side", "--kustomize", kinds)
            cluster.kubectl("wait", "crd", "--for=condition=Established", f"--timeout={patience_s(60):.0f}s", "--all")
        said = plugin("status")
        assert "central: " in said
        assert {node["metadata"]["name"] for node in cluster.get("nodes")["items"]} <= {
            line.split(maxsplit=1)[0] for line in said.splitlines() if line
        }
    finally:
        if not there:
            cluster.kubectl("delete", "--kustomize", kinds)
