"""The wheel has one top-level name, and works beside others that are called `services` and `shared`."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
TREE = ("services", "shared", "sublet")
MODULE_NAME = re.compile(r"^(services|shared)\.[a-z_]*")
NAMES_MODULES = {"sublet/doctor/node/host_processes.py"}
"""Compares them with the words of running processes, which may be of the image."""
EVERY_MODULE = """
import importlib, json, pkgutil, sys
import sublet
for found in pkgutil.walk_packages(sublet.__path__, "sublet."):
    if not found.name.endswith(".__main__"):
        importlib.import_module(found.name)
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    goal = tmp_path_factory.mktemp("wheel")
    words = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--wheel-dir", str(goal)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *words, str(ROOT)], check=True)
    (file,) = goal.glob("sublet-*.whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the wheel is installed, behind packages of others that have the two names."""
    place, others = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("others")
    wheel.extractall(place)
    for name in ("services", "shared"):
        (others / f"{name}.py").write_text(f"raise AssertionError('{name} of another distribution is imported')\n")
    paths = (str(others), str(place), sysconfig.get_paths()["purelib"])
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def python(env: dict[str, str], *words: str, text: str | None = None) -> str:
    """Output of the interpreter that reads no `.pth` file, so that the checkout is not found."""
    done = subprocess.run(
        [sys.executable, "-S", "-P", *words], env=env, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def modules() -> Iterator[tuple[str, str]]:
    """Path and text of every module of the tree."""
    for folder in TREE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()


def in_wheel(path: str) -> str:
    top, _, below = path.partition("/")
    return path if top == "sublet" else f"sublet/_{top}/{below}"


@pytest.fixture(scope="module")
def backend() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheel_backend", ROOT / "deploy/wheel_backend.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_top_level_names_are_sublet_alone(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {"sublet", info}
    assert wheel.read(f"{info}/top_level.txt").decode().split() == ["sublet"]


def test_all_of_the_tree_is_in_it_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if name.endswith(".py")}
    assert packed == {in_wheel(path) for path, _ in modules()}
    data = {path.relative_to(ROOT).as_posix() for folder in TREE for path in (ROOT / folder).rglob("*.[hjy]*")}
    assert data
    assert {in_wheel(path) for path in data} <= set(wheel.namelist())
    assert "sublet/py.typed" in wheel.namelist()


def test_every_module_is_imported_and_none_by_an_old_name(installed: dict[str, str]) -> None:
    loaded = set(json.loads(python(installed, "-c", EVERY_MODULE)))
    assert {"sublet._services.evictor.app", "sublet._shared.app", "sublet.api.plugin"} <= loaded
    assert loaded & {"services", "shared"} == set()


def test_the_command_answers(installed: dict[str, str]) -> None:
    assert "sublet up" in python(installed, "-m", "sublet", "--help")
    cases = (ROOT / "tests/cases/cpu_sizing.jsonl").read_text()
    in_tree = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), sysconfig.get_paths()["purelib"]))}
    answers = [python(env, "-m", "sublet", "whatif", "--jsonl", text=cases) for env in (in_tree, installed)]
    assert answers[0].count("\n") == len(cases.splitlines())
    assert answers[0] == answers[1]


def test_the_watcher_of_a_pod_is_found_beside_a_folder_of_an_old_name(
    installed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/__init__.py").write_text("raise AssertionError('the working folder is imported')\n")
    monkeypatch.chdir(tmp_path)
    words = "from sublet._shared.adapters.local.runtime import _SHIM; print(*_SHIM[1:])"
    isolated, _, name = python(installed, "-c", words).split()
    assert (isolated, name) == ("-P", "sublet._shared.adapters.local.shim")
    command = [sys.executable, "-S", isolated, "-m", name, str(tmp_path / "pod")]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, check=False)
    assert done.stderr.endswith(f"No such file or directory: '{tmp_path}/pod/launch.json'\n")


def test_no_string_names_a_module_that_the_wheel_renames() -> None:
    found = {
        (path, value)
        for path, text in modules()
        if path not in NAMES_MODULES
        for value in _strings(ast.parse(text))
        if MODULE_NAME.match(value)
    }
    assert found == set()


def _strings(tree: ast.Module) -> Iterator[str]:
    """Strings that are values; one that stands alone is a docstring."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("from services.qrm import app", "from sublet._services.qrm import app"),
        ("from shared import errors", "from sublet._shared import errors"),
        ("import services", "from sublet import _services as services"),
        ("import servicesque, os", "import servicesque, os"),
        ("from . import shared", "from . import shared"),
        ("x = 'from shared import y'  # from shared", "x = 'from shared import y'  # from shared"),
        ("'ä'; from shared.core import a", "'ä'; from sublet._shared.core import a"),
        (
            "if x:\n    from  shared.core import (\n        a,\n    )",
            "if x:\n    from sublet._shared.core import (\n        a,\n    )",
        ),
    ],
)
def test_imports_are_rewritten_and_nothing_else(backend: ModuleType, line: str, want: str) -> None:
    assert backend.rewritten(line, "a.py") == want


@pytest.mark.parametrize("line", ["import shared.core", "import os, services", "import shared as s"])
def test_an_import_that_binds_an_old_name_fails_the_build(backend: ModuleType, line: str) -> None:
    with pytest.raises(ValueError, match=r"a\.py:1: want 'from (shared|services) import"):
        backend.rewritten(line, "a.py")
