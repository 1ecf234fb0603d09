"""Kinds of one version and the next on a real API server: objects stay as they were, also where a stored version goes.

The last is rehearsed with a version that no release has, by the steps that `sublet doctor --upgrade` prints.
"""

import copy
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from doctor_command import Found, asked, doctor
from kube_rig.cluster import Cluster, CommandError
from kube_rig.installation import CHART
from kube_rig.tutorial import QUICK_START
from rig_parts import until
from slow_machines import patience_s

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]

CHECKOUT = Path(__file__).parents[2]
KINDS, RELEASED = CHECKOUT / "deploy/k8s/crds", CHECKOUT / "tests/fixtures/released"
VERSIONS = sorted(path for path in RELEASED.iterdir() if path.is_dir())
KIND = "evictionconfigurations.config.katalyst.kubewharf.io"
OLD, NEW = "v1alpha1", "v1alpha2"
SEEN_LIMIT_S = 30.0

Document = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def kinds(cluster: Cluster) -> Iterator[None]:
    """None at first; those that others had installed before are there again at the end."""
    there = bool(cluster.get("crd")["items"])
    cluster.kubectl("delete", "--kustomize", str(KINDS), "--ignore-not-found", "--wait")
    yield
    cluster.kubectl("delete", "--kustomize", str(KINDS), "--ignore-not-found", "--wait")
    if there:
        apply(cluster, KINDS)


def apply(cluster: Cluster, folder: Path) -> None:
    """As docs/upgrading.md says."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--kustomize", str(folder))
    cluster.kubectl("wait", "crd", "--for=condition=Established", f"--timeout={patience_s(60):.0f}s", "--all")


def objects(cluster: Cluster) -> dict[str, Document]:
    """What the tutorial's objects say, by kind."""
    return {kind: cluster.get(kind, "--all-namespaces")["items"][0]["spec"] for kind in ("kcc", KIND)}


@pytest.mark.parametrize("version", VERSIONS, ids=lambda folder: folder.name)
def test_objects_of_a_released_versions_kinds_stay_as_they_are_under_todays(cluster: Cluster, version: Path) -> None:
    apply(cluster, version / "crds")
    cluster.kubectl("create", "--filename", str(QUICK_START / "eviction-threshold.yaml"))
    before = objects(cluster)
    apply(cluster, KINDS)
    assert objects(cluster) == before
    assert before_upgrade(cluster, CHART)["stored versions"]["verdict"] == "ok"
    cluster.kubectl("delete", "--filename", str(QUICK_START / "eviction-threshold.yaml"))


def before_upgrade(cluster: Cluster, chart: Path) -> Found:
    """What `sublet doctor --upgrade` says."""
    return asked(doctor("--upgrade", str(chart), "--kubeconfig", str(cluster.admin)))[1]


def with_versions(kind: Document, *wanted: tuple[str, bool]) -> Document:
    """The kind with versions that are all as its only one; each stored or not."""
    changed = copy.deepcopy(kind)
    (only,) = kind["spec"]["versions"]
    changed["spec"]["versions"] = [only | {"name": name, "storage": stored} for name, stored in wanted]
    return changed


def test_a_stored_version_goes_by_the_steps_that_doctor_prints(cluster: Cluster, tmp_path: Path) -> None:
    apply(cluster, KINDS)
    cluster.kubectl("create", "--filename", str(QUICK_START / "eviction-threshold.yaml"))
    before = objects(cluster)[KIND]
    (file,) = (path for path in KINDS.glob("*.yaml") if f"name: {KIND}" in path.read_text())
    kind = yaml.safe_load(file.read_text())
    apply_kind(cluster, with_versions(kind, (OLD, False), (NEW, True)))
    until(lambda: stored(cluster) == [OLD, NEW], SEEN_LIMIT_S, "two stored versions")

    later = tmp_path / "chart"
    shutil.copytree(CHART, later)
    next_kind = with_versions(kind, (NEW, True))
    (later / "crds" / file.name).unlink()
    (later / "crds" / file.name).write_text(yaml.safe_dump(next_kind))
    found = before_upgrade(cluster, later)["stored versions"]
    assert (found["verdict"], f"{KIND} {OLD}" in found["said"]) == ("problem", True)
    with pytest.raises(CommandError, match=re.escape("status.storedVersions")):
        apply_kind(cluster, next_kind)

    rewritten = cluster.kubectl("get", KIND, "--all-namespaces", "--output", "json")
    cluster.kubectl("replace", "--filename", "-", given=rewritten)
    change = json.dumps({"status": {"storedVersions": [NEW]}})
    cluster.kubectl("patch", "crd", KIND, "--subresource=status", "--type=merge", "--patch", change)
    assert before_upgrade(cluster, later)["stored versions"]["verdict"] == "ok"
    apply_kind(cluster, next_kind)
    (kept,) = cluster.get(f"{KIND.partition('.')[0]}.{NEW}.{KIND.partition('.')[2]}", "--all-namespaces")["items"]
    assert kept["spec"] == before


def apply_kind(cluster: Cluster, kind: Document) -> None:
    words = ("apply", "--server-side", "--force-conflicts", "--filename", "-")
    cluster.kubectl(*words, given=yaml.safe_dump(kind))


def stored(cluster: Cluster) -> list[str]:
    return list(cluster.get("crd", KIND)["status"]["storedVersions"])
