"""The three images as `make image` builds them: the same digest twice, and each runs as nobody on a read-only root."""

import json
import os
import re
from pathlib import Path
from unittest.mock import patch

import pytest
from compose_rig.engine import Engine, EngineError

from deploy import wheel_backend
from deploy.artifacts import images
from deploy.artifacts.checkout import this_checkout
from deploy.artifacts.image_archive import config_of
from shared.build import VERSION

pytestmark = [pytest.mark.compose, pytest.mark.timeout(1800)]

HELD = ("run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none", "--memory", "256m", "--tmpfs", "/tmp")
NATS, CLIENT, CERTIFICATES = "nats-server --version", "import shared.adapters.kube.aio", "import cryptography"
HAS = {
    "sublet": {NATS, CLIENT, CERTIFICATES},
    "sublet-node": {NATS},
    "sublet-central": {CERTIFICATES},
}
TEMPLATES = Path(__file__).parents[2] / "deploy/k8s/chart/templates"
STARTED = re.compile(
    r'include "sublet\.(node|central)Image"(?:(?!image:).)*?command: \[python, -m, ([\w.]+)', re.DOTALL
)
"""Of a container of the chart: whose image it has, and the module that it starts."""


def started() -> dict[str, set[str]]:
    """The modules that the chart starts, by image; that of everything starts all of them."""
    found: dict[str, set[str]] = {name: set() for name in HAS}
    for path in TEMPLATES.rglob("*.yaml"):
        for half, module in STARTED.findall(path.read_text()):
            found[f"sublet-{half}"].add(module)
            found["sublet"].add(module)
    return found


PARTS = started()


@pytest.fixture(scope="module")
def built(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Archives and bills of materials of a first build."""
    goal = tmp_path_factory.mktemp("first")
    return images.build(this_checkout(), goal)


def inside(engine: Engine, image: str, *words: str) -> str:
    """What a command says in a new container, held as tightly as a container can be."""
    return engine.docker(*HELD, f"{image}:{VERSION}", *words)


def test_another_build_without_anything_kept_gives_the_same_digests(
    built: list[Path], tmp_path: Path, engine: Engine
) -> None:
    options = f"{os.environ['BUILD_OPTIONS']} --no-cache"
    with patch.dict(os.environ, {"BUILD_OPTIONS": options}):
        again = images.build(this_checkout(), tmp_path)
    engine.docker("image", "prune", "--force")
    assert [path.name for path in again] == [path.name for path in built]
    assert [
        path.name for path, first in zip(again, built, strict=True) if path.read_bytes() != first.read_bytes()
    ] == []


@pytest.mark.parametrize("image", HAS)
def test_an_image_holds_what_its_half_needs_and_no_more(built: list[Path], engine: Engine, image: str) -> None:
    found = set()
    for tried in (NATS, CLIENT, CERTIFICATES):
        words = tried.split() if tried == NATS else ["python", "-c", tried]
        try:
            inside(engine, image, *words)
            found.add(tried)
        except EngineError as lack:
            if not re.search("No module named|is not installed|nats-server", str(lack)):
                raise
    assert found == HAS[image]


@pytest.mark.parametrize("image", HAS)
def test_an_image_runs_as_nobody_on_a_read_only_root_and_says_what_it_is(
    built: list[Path], engine: Engine, image: str
) -> None:
    assert inside(engine, image, "sublet", "--version").startswith(f"sublet {VERSION} (revision ")
    assert inside(engine, image, "python", "-c", "import os; print(os.getuid(), os.getgid())").split() == [
        "10001",
        "10001",
    ]
    assert PARTS[image]
    inside(engine, image, "python", "-c", f"import {', '.join(sorted(PARTS[image]))}")


@pytest.mark.parametrize("image", HAS)
def test_labels_say_commit_version_and_license(built: list[Path], image: str) -> None:
    (archive,) = (path for path in built if path.name == f"{image}-{VERSION}.image.tar")
    labels = {name.rpartition(".")[2]: value for name, value in config_of(archive)["config"]["Labels"].items()}
    revision = wheel_backend.revision_of(this_checkout().folder)
    assert (labels["title"], labels["version"], labels["licenses"]) == ("Sublet", VERSION, "Apache-2.0")
    assert labels["revision"] == revision


@pytest.mark.parametrize("image", HAS)
def test_the_bill_of_materials_names_what_is_installed(built: list[Path], engine: Engine, image: str) -> None:
    (bill,) = (path for path in built if path.name == f"{image}-{VERSION}.cdx.json")
    told = {one["purl"].partition("?")[0] for one in json.loads(bill.read_text())["components"]}
    asked = "import importlib.metadata as m; print(*(f'{d.name.lower()}@{d.version}' for d in m.distributions()))"
    assert {f"pkg:pypi/{one.replace('_', '-')}" for one in inside(engine, image, "python", "-c", asked).split()} <= {
        one.replace("_", "-") for one in told
    }
    assert any(one.startswith("pkg:deb/debian/libc6@") for one in told)
