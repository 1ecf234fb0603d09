"""The bench of the agent on a kubelet gives figures of the whole pod, its containers and its parts, in a short run."""

import re
from pathlib import Path

import pytest
from kube_rig.cluster import Cluster
from kube_rig.product import Product

from bench.kubernetes.cost import Plan
from bench.kubernetes.parts import Bench, reaction, rest
from bench.rigs.report import Row

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

PODS, SPIKES, TRIES = 4, 3, 3
CONTAINERS = ("agent", "bus", "leave")


@pytest.fixture
def bench(cluster: Cluster, product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Short, and its files are the test's."""
    monkeypatch.chdir(tmp_path)
    return Bench(cluster, Product(cluster), Plan(rest_s=1.0, span_s=5.0, runs=1, spikes=SPIKES), PODS)


def figure(rows: list[Row], what: str) -> float:
    """The first number of a row."""
    (row,) = (row for row in rows if row.what == what)
    found = re.match(r"[0-9.]+", row.figure)
    assert found is not None, row
    return float(found[0])


def test_cost_is_told_of_the_pod_its_containers_and_the_parts_of_the_agent(bench: Bench, tmp_path: Path) -> None:
    rows = rest(bench)
    what = f"{PODS} pods at rest"
    whole = figure(rows, f"CPU of the agent's pod, {what}")
    parts = [figure(rows, f"  CPU of container {name}, {what}") for name in CONTAINERS]
    assert 0 < sum(parts) <= whole * 1.1
    rss_mib = figure(rows, f"memory of the agent's pod, {what}, RSS (PSS)")
    each_mib = [figure(rows, f"  memory of container {name}, {what}, RSS (PSS)") for name in CONTAINERS]
    assert all(each_mib)
    assert sum(each_mib) <= rss_mib + len(CONTAINERS)
    assert figure(rows, f"restarts in the agent's pod, {what}") == 0
    assert {"metrics", "qrm"} & {row.what.strip().partition(",")[0] for row in rows}
    assert list((tmp_path / "out/bench").glob("stacks-*.txt"))
    assert any(row.meanwhile for row in rows)


def test_spikes_of_a_tenant_are_followed_by_a_smaller_cpuset_of_a_batch_pod(bench: Bench) -> None:
    for _ in range(TRIES):
        quiet, loaded = reaction(bench)
        assert (quiet.n, loaded.n) == (SPIKES, SPIKES)
        # Not every one is seen: a tenant that others keep from its CPUs uses little.
        if not quiet.figure.endswith(f" {SPIKES} without"):
            return
    pytest.fail(f"no spike of {TRIES * SPIKES} was followed: {quiet}")
