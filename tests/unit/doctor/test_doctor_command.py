"""The command, its two outputs, its exit codes, and the ways to a cluster."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shared.errors import Refused, Unavailable, Unfit
from sublet import cli, invocation
from sublet.cluster import way
from sublet.cluster.way import Way, find_way, open_kube
from sublet.commands import doctor as command
from sublet.doctor.finding import FindingRow, ok, problem, some, unchecked, warning
from sublet.doctor.report import as_json, lines

ROWS = [
    FindingRow("node n1", "kernel", ok("Linux 6.1")),
    FindingRow("node n1", "pressure", warning("none", "boot with psi=1")),
    FindingRow("cluster", "kubelets", unchecked("you may not")),
]
BROKEN = FindingRow("cluster", "kinds", problem("of another version", "apply them"))
ELSEWHERE = Path("kube-of-a-test")


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the command looks at; it finds ROWS there."""
    seen: list[Any] = []

    async def node() -> list[FindingRow]:
        seen.append("node")
        return ROWS[:2]

    async def cluster(where: Way, namespace: str, *, installed: bool = False) -> list[FindingRow]:
        seen.append((where, namespace, *(["installed"] if installed else [])))
        return ROWS[2:]

    monkeypatch.setattr(command, "_node", node)
    monkeypatch.setattr(command, "_cluster", cluster)
    monkeypatch.setattr(way, "way_to_cluster", lambda asked: asked and Way(asked))
    return seen


def run(*words: str) -> Any:
    return CliRunner().invoke(cli.build({"doctor": command, "get": command}), ["doctor", *words])


def test_a_line_for_each_check_and_one_for_what_to_do() -> None:
    assert list(lines([*ROWS, BROKEN])) == [
        "node n1",
        "  ok           kernel               Linux 6.1",
        "  warning      pressure             none",
        "                                    -> boot with psi=1",
        "cluster",
        "  not checked  kubelets             you may not",
        "  problem      kinds                of another version",
        "                                    -> apply them",
        "1 ok, 1 warning, 1 problem, 1 not checked",
    ]


def test_programs_are_told_the_same() -> None:
    told = as_json([*ROWS, BROKEN])
    assert told["ok"] is False
    assert told["verdicts"] == {"ok": 1, "warning": 1, "problem": 1, "not checked": 1}
    assert told["findings"][1] == {
        "place": "node n1", "check": "pressure", "verdict": "warning", "said": "none", "fix": "boot with psi=1"
    }  # fmt: skip
    assert as_json(ROWS)["ok"] is True


def test_warnings_and_what_was_not_checked_are_no_failure(looked: list[Any]) -> None:
    done = run("--node", "-o", "json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["verdicts"]["warning"] == 1
    assert looked == ["node"]


def test_a_problem_is_a_failure(looked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_cluster", _found_broken)
    assert run("--kubeconfig", str(ELSEWHERE)).exit_code == 1


async def _found_broken(_where: Way, _namespace: str) -> list[FindingRow]:
    return [BROKEN]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["node"]),
        (("--kubeconfig", str(ELSEWHERE)), ["node", (Way(ELSEWHERE), "sublet-system")]),
        (("--cluster", "--kubeconfig", str(ELSEWHERE), "-n", "other"), [(Way(ELSEWHERE), "other")]),
        (("--node", "--kubeconfig", str(ELSEWHERE)), ["node"]),
        (("--node", "--cluster", "--kubeconfig", str(ELSEWHERE)), ["node", (Way(ELSEWHERE), "sublet-system")]),
    ],
)
def test_it_looks_at_what_is_asked_for_or_there(looked: list[Any], words: tuple[str, ...], expected: list[Any]) -> None:
    run(*words)
    assert looked == expected


def test_a_plugin_of_kubectl_means_the_cluster(looked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-sublet"])
    run("--kubeconfig", str(ELSEWHERE))
    assert looked == [(Way(ELSEWHERE), "sublet-system")]


def test_of_an_installation_what_cannot_be_seen_is_a_problem(looked: list[Any]) -> None:
    done = run("--installed", "--kubeconfig", str(ELSEWHERE), "-n", "other")
    assert looked == [(Way(ELSEWHERE), "other", "installed")]
    assert (done.exit_code, "not checked: you may not" in done.stdout) == (1, True)


def test_a_cluster_that_nobody_knows_is_said(looked: list[Any]) -> None:
    assert isinstance(run("--cluster").exception, Unavailable)


def test_without_the_kubernetes_client_the_node_is_looked_at_all_the_same(
    looked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unfit(_where: Way, _namespace: str) -> list[FindingRow]:
        raise Unfit("the Kubernetes client is not installed")

    monkeypatch.setattr(command, "_cluster", unfit)
    found = json.loads(run("--kubeconfig", str(ELSEWHERE), "-o", "json").stdout)["findings"]
    assert [(row["check"], row["verdict"]) for row in found][-1] == ("API server", "not checked")
    assert isinstance(run("--cluster", "--kubeconfig", str(ELSEWHERE)).exception, Unfit)


def test_a_kubeconfig_without_the_kubernetes_client_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    for name in [name for name in sys.modules if name.startswith("shared.adapters.kube.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(Unfit, match=r"pip install 'sublet\[kube\]'"):
        open_kube(Way(ELSEWHERE))
    open_kube(Way(None))  # a pod does without it


def test_the_way_to_a_cluster_is_found_as_kubectl_finds_it(tmp_path: Path) -> None:
    asked, home = tmp_path / "asked", tmp_path / "home"
    asked.touch()
    env = {"KUBECONFIG": "/of/env", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert find_way(asked, Path("/of/settings"), env, home) == Way(asked)
    assert find_way(None, Path("/of/settings"), env, home) == Way(Path("/of/settings"))
    assert find_way(None, None, env, home) == Way(Path("/of/env"))
    assert find_way(None, None, env | {"KUBECONFIG": ""}, home) == Way(None)
    (home / ".kube").mkdir(parents=True)
    (home / ".kube/config").touch()
    assert find_way(None, None, {}, home) == Way(home / ".kube/config")
    assert find_way(None, None, {}, tmp_path) is None
    with pytest.raises(Refused, match="no such file"):
        find_way(tmp_path / "none", None, env, home)


@pytest.mark.parametrize(
    ("argv0", "name"),
    [
        ("/usr/local/bin/kubectl-sublet", "kubectl sublet"),
        ("kubectl-sublet", "kubectl sublet"),
        ("/opt/venv/bin/sublet", "sublet"),
        ("/opt/venv/lib/python3.11/site-packages/sublet/__main__.py", "sublet"),
    ],
)
def test_a_program_has_the_name_by_which_it_is_called(argv0: str, name: str) -> None:
    assert invocation.program_name(argv0) == name


@pytest.mark.parametrize("argv0", ["kubectl-sublet", "sublet/__main__.py"])
def test_help_names_the_program(
    argv0: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [argv0, "doctor", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    assert f"Usage: {invocation.program_name(argv0)} doctor [OPTIONS]" in capsys.readouterr().out


def test_a_plugin_leaves_out_what_only_a_host_has(monkeypatch: pytest.MonkeyPatch) -> None:
    every = dict.fromkeys([*cli.OF_THIS_HOST, "doctor"], command)
    assert len(cli.build(every).registered_commands) == len(every)
    assert len(cli.build(every, invocation.PLUGIN).registered_commands) == 1


def test_of_many_names_the_first_are_told() -> None:
    assert some(["a", "b", "c"]) == "a, b, c"
    assert some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
