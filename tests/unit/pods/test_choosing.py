"""Pods are named, listed, watched, described and deleted as kubectl's users type it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pods_rig import record
from wrong_inputs import Answer, application, attempt, machine, row

from shared.adapters.local.pods import LocalPods
from shared.adapters.local.runtime import Runtime
from shared.adapters.local.stored_pod import StoredPod
from shared.settings import CommonSettings
from sublet.pods.choosing import PodChoice, chosen_pods
from sublet.pods.shown.watching import watched_lines


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return application()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with machine(tmp_path):
        yield tmp_path


@pytest.fixture
def store(folder: Path) -> LocalPods:
    pods = LocalPods(folder / "state")
    for namespace, name, labels in (
        ("default", "web", {"app": "web"}),
        ("default", "db", {"app": "db"}),
        ("team", "web", {}),
    ):
        made = record(name)
        pods.add(made.model_copy(update={"pod": made.pod.model_copy(
            update={"uid": f"{len(pods.stored())}-a", "namespace": namespace, "labels": labels})}))  # fmt: skip
    return pods


@pytest.fixture
def sublet(app: typer.Typer, store: LocalPods) -> Any:
    def run(typed: str, stdin: str = "") -> Answer:
        return attempt(app, row(typed, 0, "", stdin))

    return run


def keys(answer: Answer) -> list[str]:
    return ["/".join(line.split()[:2]) for line in answer.out.splitlines()[1:]]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pods that were told to end, which takes a kernel or a simulator elsewhere."""
    keys: list[str] = []

    async def end(_runtime: Runtime, stored: StoredPod, _grace_s: float) -> None:
        keys.append(stored.record.pod.key)

    monkeypatch.setattr(Runtime, "end", end)
    return keys


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("get pods", ["default/db", "default/web", "team/web"]),
        ("get po -A", ["default/db", "default/web", "team/web"]),
        ("get pods -n team", ["team/web"]),
        ("get pods -n team -A", ["default/db", "default/web", "team/web"]),
        ("get pods web db", ["default/web", "default/db"]),
        ("get pod/web pod/db", ["default/web", "default/db"]),
        ("get pod web web", ["default/web"]),
        ("get pod web -n team", ["team/web"]),
        ("get pods -l app=web", ["default/web"]),
        ("get pods -l 'app in (web,db)'", ["default/db", "default/web"]),
        ("get pods -l '!app'", ["team/web"]),
    ],
)
def test_which_pods_are_shown(sublet: Any, typed: str, found: list[str]) -> None:
    assert keys(sublet(typed)) == found


def test_the_forms_of_output(sublet: Any) -> None:
    assert sublet("get pods -o name").out == "pod/db\npod/web\npod/web\n"
    assert sublet("get pods -o wide").out.splitlines()[0].split()[-3:] == ["UID", "PIDS", "COMMAND"]
    assert sublet("get pods -o jsonpath='{.items[*].metadata.name}'").out == "db web web\n"
    assert sublet("get pod web -o jsonpath={.metadata.namespace}").out == "default\n"
    assert json.loads(sublet("get pod web -o json").out)["metadata"]["name"] == "web"
    assert len(yaml.safe_load(sublet("get pods -o yaml").out)["items"]) == 3
    assert sublet("get node -o name").out == "node/node1\n"


def test_another_nodes_object_is_not_this_ones(sublet: Any, folder: Path) -> None:
    (folder / "state/cnr.json").write_text('{"kind": "CustomNodeResource", "metadata": {"name": "node1"}}')
    assert sublet("get cnr node1").code == 0
    for typed in ("get cnr other", "get cnr/other", "get node other"):
        answer = sublet(typed)
        assert (answer.code, answer.out, "'other' not found; this host is 'node1'" in answer.err) == (1, "", True)


def test_describe_says_all_of_a_pod_and_of_the_node(sublet: Any, folder: Path) -> None:
    said = sublet("describe pod web -n team").out
    assert all(
        word in said
        for word in ("Name:              web", "Namespace:         team", "Command:", "sublet explain pod/web")
    )
    (folder / "state/cnr.json").write_text(json.dumps({
        "metadata": {"name": "node1"},
        "status": {"resourceAllocatable": {"katalyst.kubewharf.io/reclaimed_millicpu": "44k"}},
    }))  # fmt: skip
    node = sublet("describe node").out
    assert all(word in node for word in ("node1", "reclaimed_millicpu 44000", "Pods:              3"))
    assert sublet("describe pods").out.count("Namespace:") == 3


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("delete web", ["default/web"]), ("delete pod web db", ["default/db", "default/web"]),
        ("delete pod/web pod/db", ["default/db", "default/web"]),
        ("delete --all", ["default/db", "default/web", "team/web"]),
        ("delete pods --all -n team", ["team/web"]), ("delete -l app=db", ["default/db"]),
        ("delete -f pods.yaml", ["team/web"]), ("delete -f pods.yaml -f more", ["default/db", "team/web"]),
        ("delete --all --dry-run", []), ("delete web --dry-run", []),
    ],
)  # fmt: skip
def test_which_pods_are_deleted(sublet: Any, ended: list[str], folder: Path, typed: str, wanted: list[str]) -> None:
    (folder / "pods.yaml").write_text("kind: Pod\nmetadata: {name: web, namespace: team}\n")
    (folder / "more").mkdir()
    (folder / "more/a.yaml").write_text("kind: Pod\nmetadata: {name: db}\n")
    answer = sublet(typed)
    assert (answer.code, sorted(ended)) == (0, wanted), answer


@pytest.mark.parametrize(
    "typed", ["delete", "delete web --all", "delete web -l app=db", "delete --all -f folder", "delete web nope",
              "delete pods", "delete node/node1", "delete -f empty.yaml", "delete -f folder", "delete -l ''"],
)  # fmt: skip
def test_a_doubtful_delete_ends_nothing(sublet: Any, ended: list[str], typed: str) -> None:
    answer = sublet(typed)
    assert (answer.code in (1, 2), answer.out, ended) == (True, "", []), answer


def test_watching_prints_the_table_and_then_what_changes(folder: Path, store: LocalPods) -> None:
    runtime = Runtime(CommonSettings(state_dir=folder / "state", host_root=folder / "root"))
    steps: Iterator[Callable[[], object]] = iter(
        (lambda: None, lambda: store.update_status("0-a", phase="Running"), lambda: store.remove("1-a"))
    )
    lines = watched_lines(runtime, lambda: chosen_pods(runtime, PodChoice()), lambda _s: next(steps)(), wide=False)
    assert len(next(lines).splitlines()) == 4
    changed = next(lines)
    assert (changed.split()[:2], "Running" in changed, len(changed.splitlines())) == (["default", "web"], True, 1)
    assert next(lines) == "pod/db deleted"


def test_the_end_of_a_log(sublet: Any, store: LocalPods) -> None:
    log = store.find("web").folder.log("main")
    log.parent.mkdir()
    for text, lines, wanted in (
        ("a\nb\nc\n", 2, "b\nc\n"), ("a\nb\nc", 2, "b\nc"), ("a\nb\n", 9, "a\nb\n"), ("a\n", 0, ""), ("", 3, ""),
        ("\n\n\n", 2, "\n\n"), ("x" * 70_000 + "\n" + "y" * 70_000 + "\nz\n", 2, "y" * 70_000 + "\nz\n"),
    ):  # fmt: skip
        log.write_text(text)
        assert tail(store, lines) == wanted


def tail(store: LocalPods, lines: int) -> str:
    from shared.adapters.local.log import LogChoice, read_log

    pod = store.find("web")
    return b"".join(read_log(pod.folder.log("main"), LogChoice(tail_lines=lines), lambda: False)).decode()


POD = "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {containers: [{name: main, command: [x]}]}}"


def test_apply_takes_every_file_and_folder(sublet: Any, store: LocalPods, folder: Path) -> None:
    (folder / "up").mkdir()
    for path, name in (
        ("a.yaml", "a"),
        ("up/b.yml", "b"),
        ("up/c.json", "c"),
        ("up/deep/d.yaml", "d"),
        ("up/x.txt", "x"),
    ):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(POD.replace("NAME", name))
    said = {
        typed: [line.split()[0] for line in sublet(f"apply --dry-run {typed}").out.splitlines()]
        for typed in ("-f a.yaml -f up", "-f up -R", "-f a.yaml -f -")
    }
    assert said["-f a.yaml -f up"] == ["pod/a", "pod/b", "pod/c"]
    assert said["-f up -R"] == ["pod/b", "pod/c", "pod/d"]
    both = sublet("apply --dry-run -f a.yaml -f -", POD.replace("NAME", "z"))
    assert both.out == "pod/a created (dry run)\npod/z created (dry run)\n"
    twice = sublet("apply --dry-run -f a.yaml -f a.yaml")
    assert (twice.code, twice.out, "default/a" in twice.err) == (2, "", True)
    assert len(store.stored()) == 3


def test_a_list_is_its_items(sublet: Any, folder: Path) -> None:
    (folder / "all.yaml").write_text(f"kind: List\nitems: [{POD.replace('NAME', 'a')}, {POD.replace('NAME', 'b')}]")
    assert sublet("apply --dry-run -f all.yaml").out == "pod/a created (dry run)\npod/b created (dry run)\n"
    (folder / "shown.yaml").write_text(sublet("get pods -n team -o yaml").out)
    assert sublet("delete -f shown.yaml --dry-run").out == "pod/web deleted (dry run)\n"
