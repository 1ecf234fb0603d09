"""`sublet pause` of a pool and of the cluster on a real API server: who may, and that the nodes hear of it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_rig.cluster import Cluster
from kube_rig.installation import NAMESPACE
from kube_rig.node import NODE
from kube_rig.product import Product
from rig_parts import until
from slow_machines import patience_s

from shared.contracts.cluster.pauses import POOL_LABEL

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

CHECKOUT = Path(__file__).parents[2]
HEARD_LIMIT_S = 60.0
POOL_LIMIT_S = 150.0
"""An agent looks once a minute in which pool its node is."""
AGENT = "daemonset/sublet-node"
OPERATOR, STRANGER, POOL = "pause-operator", "pause-stranger", "pause-story"
WHY = "a story about pauses"
Said = tuple[int, dict[str, Any], str]


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed, with an operator who has the Role of the chart and nothing else."""
    installed = Product(cluster)
    installed.install({})
    words = ("create", "rolebinding", OPERATOR, "--role=sublet-pauses", f"--user={OPERATOR}")
    installed.in_system(*words)
    yield installed
    cluster.kubectl("label", "node", NODE, f"{POOL_LABEL}-")
    installed.uninstall()
    installed.leave()


def typed(cluster: Cluster, user: str, *words: str) -> Said:
    """A command of this user beside the cluster: exit code, what it prints, what it complains of."""
    env = {"NO_PROXY": "*", "PYTHONPATH": str(CHECKOUT), "PATH": "/usr/bin:/bin"}
    who = ["--kubeconfig", str(cluster.client(user)), "--output", "json"]
    command = [sys.executable, "-m", "sublet", *words, *who]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=patience_s(120))
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def told(sublet: Product) -> list[str]:
    """Why the node's evictor has paused, as `sublet status` in its pod says."""
    command = "sublet status --output json || true"  # its exit code speaks of the node's health
    text = sublet.in_system("exec", AGENT, "--container", "agent", "--", "sh", "-c", command)
    conditions = json.loads(text or "{}").get("conditions", [])
    return [row["message"] for row in conditions if row["type"] == "EvictionsPaused" and WHY in row["message"]]


def test_who_has_no_right_pauses_nothing_and_reads_which_role_he_lacks(sublet: Product, cluster: Cluster) -> None:
    code, _, said = typed(cluster, STRANGER, "pause", "--cluster", "--reason", WHY)
    assert code != 0
    assert "Role sublet-pauses" in said
    assert not cluster.get("configmap", "sublet-pauses", "--namespace", NAMESPACE).get("data")


def test_an_operator_pauses_the_cluster_until_he_resumes_it_and_the_node_hears_both(
    sublet: Product, cluster: Cluster
) -> None:
    code, said, complaint = typed(cluster, OPERATOR, "pause", "--cluster", "--reason", WHY, "--for", "1h")
    assert (code, said.get("reason"), said.get("by")) == (0, WHY, OPERATOR), complaint
    until(lambda: told(sublet), HEARD_LIMIT_S, "a node that has heard of the pause")
    code, said, complaint = typed(cluster, OPERATOR, "resume", "--cluster")
    assert (code, said.get("was_paused")) == (0, True), complaint
    until(lambda: not told(sublet), HEARD_LIMIT_S, "a node that has heard of its end")


def test_a_pause_of_a_pool_is_for_its_nodes_alone(sublet: Product, cluster: Cluster) -> None:
    code, _, complaint = typed(cluster, OPERATOR, "pause", "--pool", POOL, "--reason", WHY)
    assert code == 0, complaint
    # A pause of all comes later by the same way: who has heard of that has heard of the first one, too.
    typed(cluster, OPERATOR, "pause", "--cluster", "--reason", f"{WHY}, of all")
    until(lambda: told(sublet), HEARD_LIMIT_S, "a node that has heard of the later pause")
    typed(cluster, OPERATOR, "resume", "--cluster")
    until(lambda: not told(sublet), HEARD_LIMIT_S, "a node that minds no other pool's pause")
    cluster.kubectl("label", "node", NODE, f"{POOL_LABEL}={POOL}")
    until(lambda: told(sublet), POOL_LIMIT_S, "a node that has come into the pool")
    code, said, complaint = typed(cluster, OPERATOR, "resume", "--pool", POOL)
    assert (code, said.get("was_paused")) == (0, True), complaint
    until(lambda: not told(sublet), HEARD_LIMIT_S, "a node whose pool goes on")
