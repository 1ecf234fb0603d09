"""Names after a TAB: what each command offers, quickly said and without a word where there is nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from pods_rig import record
from typer.testing import CliRunner
from wrong_inputs import application, machine

from shared.adapters.local.pods import LocalPods
from sublet.completion import names


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return application()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with machine(tmp_path):
        LocalPods(tmp_path / "state").add(record("web"))
        LocalPods(tmp_path / "state").add(record("encode"))
        yield tmp_path


def offered(app: typer.Typer, typed: str) -> list[str]:
    """What bash is told for a line that ends with an incomplete word."""
    env = {
        "_SUBLET_COMPLETE": "complete_bash",
        "COMP_WORDS": f"sublet {typed}",
        "COMP_CWORD": str(len(typed.split(" "))),
    }
    result = CliRunner().invoke(app, [], env=env, prog_name="sublet")
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.split()


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("get ", {"pods", "node", "cnr", "pod/web", "pod/encode"}), ("get pod/w", {"pod/web"}), ("logs e", {"encode"}),
        ("delete pod/", {"pod/web", "pod/encode"}), ("describe no", {"node"}), ("explain pod/e", {"pod/encode"}),
        ("get pods -o js", {"json", "jsonpath="}), ("sim qu", {"quickstart"}), ("replay --policy canon", {"canonical"}),
        ("replay --peer k", {"katalyst", "koordinator"}), ("whatif estimate_container_c", {"estimate_container_cpu"}),
        ("logs nothing-like-it", set()), ("policy test canon", {"canonical"}),
        ("plugin test numa_m", {"numa_memory_pressure"}),
        ("config explain advisor.reserve_c", {"advisor.reserve_cores"}),
        ("config explain evictor.plugins.template.e", {"evictor.plugins.template.enabled"}),
    ],
)  # fmt: skip
def test_what_is_offered(app: typer.Typer, folder: Path, typed: str, found: set[str]) -> None:
    assert set(offered(app, typed)) == found


def test_without_a_state_folder_nothing_is_offered_and_nothing_is_said(app: typer.Typer, tmp_path: Path) -> None:
    with machine(tmp_path):
        (tmp_path / "state/pods").write_text("no folder")
        assert offered(app, "logs ") == []


def test_whatever_goes_wrong_nothing_is_offered() -> None:
    def fail() -> list[str]:
        raise RuntimeError("x")

    assert names.completer(fail)("") == []
