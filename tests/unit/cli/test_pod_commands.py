"""The pod commands without a kernel: what they print, what they refuse, with which exit code."""

import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import typer
import yaml
from pods_rig import record, wait_for
from typer.testing import CliRunner

from shared.adapters.local.pods import LocalPods
from shared.core.cgroups.layout import container_group
from shared.errors import Refused, Unavailable
from sublet import cli
from sublet.commands import apply, delete, get, logs, run
from sublet.sim.host import SimHost
from sublet.sim.machine import SimMachine

MODULES = {"run": run, "apply": apply, "get": get, "logs": logs, "delete": delete}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "encode", "annotations": {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"}},
    "spec": {"containers": [{"name": "main", "command": ["true"]}]},
}


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "root/sys/fs/cgroup/cpuset").mkdir(parents=True)
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBLET_HOST_ROOT", str(tmp_path / "root"))
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.fixture
def store(state_dir: Path) -> LocalPods:
    return LocalPods(state_dir)


def sublet(*arguments: Any, stdin: str | None = None) -> SimpleNamespace:
    """A command through the same door as `main`, with its errors turned into code and text."""
    result = CliRunner().invoke(cli.build(MODULES), list(arguments), input=stdin)
    if isinstance(result.exception, Refused | Unavailable):
        return SimpleNamespace(exit_code=None, error=str(result.exception), stdout=result.stdout, stderr=result.stderr)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return SimpleNamespace(exit_code=result.exit_code, error="", stdout=result.stdout, stderr=result.stderr)


def _cnr(state_dir: Path, millicpu: str) -> dict[str, Any]:
    resources = {"katalyst.kubewharf.io/reclaimed_millicpu": millicpu}
    document = {"kind": "CustomNodeResource", "metadata": {"name": "n1"}, "status": {"resourceAllocatable": resources}}
    (state_dir / "cnr.json").write_text(json.dumps(document))
    return document


def test_help_lists_the_commands_in_the_order_a_user_needs_them() -> None:
    lines = sublet("--help").stdout.partition("Commands:")[2].splitlines()
    assert [line.split()[0] for line in lines if line.strip()] == ["run", "apply", "get", "logs", "delete"]


def test_each_command_says_what_it_does() -> None:
    assert all("Usage:" in sublet(name, "--help").stdout for name in MODULES)


def test_run_documents_its_exit_codes() -> None:
    said = " ".join(sublet("run", "--help").stdout.split())
    assert all(code in said for code in ("128+n", "125", "126", "127"))


def test_without_pods_get_says_how_to_start_one(state_dir: Path) -> None:
    assert "sublet run" in sublet("get", "pods").stdout


def test_get_prints_a_line_for_each_pod(store: LocalPods) -> None:
    made = record("encode", cpu_request_millis=500, memory_request_bytes=256 << 20)
    store.add(made)
    store.update_status(made.pod.uid, phase="Running")
    header, line = sublet("get", "pods").stdout.splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "QOS", "CPU", "MEMORY", "STATUS", "EXIT", "AGE"]
    assert line.split()[:7] == ["default", "encode", "reclaimed_cores", "500m", "256Mi", "Running", "-"]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"terminating": True}, "Terminating"),
        ({"phase": "Succeeded"}, "Completed"),
        ({"phase": "Failed"}, "Error"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Failed", "containers": {"main": {"exit_code": 137, "reason": "OOMKilled"}}}, "OOMKilled"),
    ],
)
def test_the_state_of_a_pod_is_one_word(store: LocalPods, state_dir: Path, changes: dict[str, Any], word: str) -> None:
    (state_dir / "up.json").write_text('{"substrate": "sim"}')
    made = record("encode")
    store.add(made)
    store.update_status(made.pod.uid, **changes)
    assert sublet("get", "pods").stdout.splitlines()[1].split()[5] == word


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_one_pod_is_printed_as_a_document_that_could_be_applied_again(store: LocalPods, output: str) -> None:
    made = record("encode", "sleep", "9", cpu_request_millis=2000, memory_request_bytes=1 << 30)
    store.add(
        made.model_copy(update={"pod": made.pod.model_copy(update={"annotations": POD["metadata"]["annotations"]})})
    )
    document = yaml.safe_load(sublet("get", "pod/encode", "-o", output).stdout)
    (container,) = document["spec"]["containers"]
    assert container["resources"]["requests"] == {
        "resource.katalyst.kubewharf.io/reclaimed_millicpu": "2k",
        "resource.katalyst.kubewharf.io/reclaimed_memory": "1Gi",
    }
    assert (document["kind"], document["status"]["phase"], container["command"]) == ("Pod", "Pending", ["sleep", "9"])


def test_many_pods_are_a_list(store: LocalPods) -> None:
    store.add(record("a"))
    store.add(record("b"))
    document = json.loads(sublet("get", "pods", "-o", "json").stdout)
    assert [item["metadata"]["name"] for item in document["items"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("get", "jobs"), "want pods, pod/NAME, cnr or node"),
        (("get", "pod/web"), "pod default/web not found"),
        (("logs", "web"), "pod default/web not found"),
        (("delete", "pod/web"), "pod default/web not found"),
        (("get", "cnr"), "sudo sublet up"),
        (("apply", "-f", "/does/not/exist.yaml"), "/does/not/exist.yaml"),
    ],
)
def test_what_is_not_there_is_named_with_the_next_step(state_dir: Path, arguments: tuple[str, ...], word: str) -> None:
    assert word in sublet(*arguments).error


def test_the_nodes_object_is_printed_as_it_was_reported(state_dir: Path) -> None:
    document = _cnr(state_dir, "44k")
    assert yaml.safe_load(sublet("get", "cnr", "-o", "yaml").stdout) == document
    assert sublet("get", "cnr").stdout.splitlines()[1].split() == ["n1", "44000", "-"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--name", "../x", "--", "true"), "../x"),
        (("--cpu", "two", "--", "true"), "two"),
        (("--cpu=-1", "--", "true"), "out of bounds"),
        (("--memory", "1Q", "--", "true"), "1Q"),
        (("--env", "A", "--", "true"), "want NAME=VALUE"),
        (("--", "true"), "sudo sublet up"),
        (("--qos", "shared", "--cpu", "2", "--cpu-limit", "1", "--", "true"), "above its limit"),
    ],
    ids=["path as name", "bad CPU", "negative CPU", "bad memory", "bad variable", "not up", "above limit"],
)
def test_run_refuses_with_125_and_leaves_nothing(store: LocalPods, arguments: tuple[str, ...], word: str) -> None:
    result = sublet("run", *arguments)
    assert (result.exit_code, word in result.stderr) == (125, True)
    assert result.stderr.count("\n") == 1
    assert store.stored() == []


def test_an_unknown_class_is_a_usage_error(state_dir: Path) -> None:
    result = sublet("run", "--qos", "golden", "--", "true")
    assert (result.exit_code, "--qos" in result.stderr) == (2, True)


def test_more_than_is_offered_is_a_warning(store: LocalPods, state_dir: Path) -> None:
    _cnr(state_dir, "1k")
    store.add(record("first", cpu_request_millis=800))
    said = sublet("run", "--cpu", "300m", "--", "true").stderr.splitlines()[0]
    assert "1100 in all, 1k is offered now" in said
    assert "in all" not in sublet("run", "--cpu", "200m", "--", "true").stderr


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a: [", "not YAML"),
        ("", "no document"),
        (yaml.dump(POD | {"kind": "Job"}), "only kind Pod"),
        (yaml.dump_all([POD, POD]), "stands twice"),
    ],
    ids=["not YAML", "empty", "another kind", "twice"],
)
def test_apply_refuses_a_file_whole(store: LocalPods, text: str, word: str) -> None:
    assert word in sublet("apply", "-f", "-", stdin=text).error
    assert store.stored() == []


def test_apply_leaves_a_pod_that_runs_as_the_file_says_alone(store: LocalPods) -> None:
    from shared.core.pods.manifest import read_pod

    store.add(read_pod(POD, "abc").record)
    assert sublet("apply", "-f", "-", stdin=yaml.dump(POD)).stdout == "pod/encode unchanged\n"


@pytest.fixture
def machine(store: LocalPods, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimHost]:
    """A simulated machine that lives while the test types commands, which set up the logging of their process."""
    monkeypatch.setattr("sublet.sim.host.log", Mock())
    (state_dir / "up.json").write_text('{"substrate": "sim"}')
    host = SimHost.create(state_dir / "simhost", SimMachine(sockets=1, cores_per_numa=2, memory="8Gi"), state_dir)
    over, turns = threading.Event(), itertools.count()

    def live() -> None:
        while not over.wait(0.001):
            host.step(float(next(turns)))

    living = threading.Thread(target=live)
    living.start()
    yield host
    over.set()
    living.join()


def _state(name: str) -> str:
    return str(sublet("get", f"pod/{name}").stdout.splitlines()[1].split()[5])


def test_on_the_simulator_a_pod_runs_with_a_load_of_its_own(machine: SimHost) -> None:
    assert sublet("run", "-d", "--name", "wave", "--load", "sine:0.5..3:60s").stdout == "pod/wave started\n"
    wait_for(lambda: _state("wave") == "Running")
    assert "CPU sine:0.5..3:60s cores, memory 16 MiB" in sublet("logs", "wave").stdout
    document = yaml.safe_load(sublet("get", "pod/wave", "-o", "yaml").stdout)
    assert document["metadata"]["annotations"]["sim.sublet/load"] == "sine:0.5..3:60s"
    assert sublet("delete", "pod/wave").stdout == "pod/wave deleted\n"
    assert machine.pods.stored() == []


def test_on_the_simulator_a_pod_above_its_memory_is_killed(machine: SimHost) -> None:
    words = ("--memory", "1Gi", "--memory-load", "2Gi")
    assert sublet("run", "-d", "--name", "leak", *words, "--", "train").exit_code == 0
    wait_for(lambda: _state("leak") == "OOMKilled")
    done = sublet("run", "--name", "leak", *words)
    assert (done.exit_code, "has ended, OOMKilled" in done.stderr) == (137, True)
    assert "killed: out of memory" in sublet("logs", "leak").stdout
    assert "killed: out of memory" in sublet("logs", "leak", "--previous").stdout
    assert sublet("logs", "leak", "--timestamps").stdout.splitlines()[0].split()[1:3] == ["runs", "on"]
    assert sublet("logs", "leak", "--since-time", "2100-01-01").stdout == ""


def test_on_the_simulator_a_document_says_the_load(machine: SimHost) -> None:
    meta = POD["metadata"] | {"annotations": POD["metadata"]["annotations"] | {"sim.sublet/load": "2.5"}}
    assert sublet("apply", "-f", "-", stdin=yaml.dump(POD | {"metadata": meta})).stdout == "pod/encode created\n"
    wait_for(lambda: _state("encode") == "Running")
    (group,) = (container_group(item.record.pod, "main") for item in machine.pods.stored())
    assert len(machine.kernel.groups.cgroups.pids(group)) == 1 + 3
    assert sublet("delete", "pod/encode").exit_code == 0


def test_where_no_simulated_machine_is_up_nothing_starts(store: LocalPods, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBLET_SUBSTRATE", "sim")
    result = sublet("run", "--load", "1")
    assert (result.exit_code, "start one: sublet up --substrate sim" in result.stderr) == (125, True)
    assert store.stored() == []


def test_a_load_is_refused_where_real_processes_run(store: LocalPods) -> None:
    result = sublet("run", "--load", "2.5", "--", "true")
    assert (result.exit_code, store.stored()) == (125, [])
    assert "--load 2.5: only a simulated machine plays a load" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--load", "lots"), "--load 'lots': quantity 'lots'"),
        (("--load", "sinus:1..2:60s"), "want one amount, or sine|square|ramp:LOW..HIGH:PERIOD"),
        (("--memory-load", "sine:2Gi..1Gi:60s"), "--memory-load 'sine:2Gi..1Gi:60s': LOW 2Gi is above HIGH 1Gi"),
        (("--", "stress", "-c", "many"), "stress -c 'many': want a whole number of workers"),
    ],
)
def test_a_load_that_cannot_be_played_is_refused_in_words(
    store: LocalPods, state_dir: Path, words: tuple[str, ...], said: str
) -> None:
    (state_dir / "up.json").write_text('{"substrate": "sim"}')
    result = sublet("run", *words)
    assert (result.exit_code, said in result.stderr) == (125, True), result.stderr
    assert store.stored() == []


def test_logs_need_a_container_where_there_are_several(store: LocalPods) -> None:
    made = record("pair")
    second = made.runs[0].model_copy(update={"name": "side"})
    folder = store.add(made.model_copy(update={"runs": (*made.runs, second)}))
    assert "choose one with -c" in sublet("logs", "pair").error
    assert "no container 'third'" in sublet("logs", "pair", "-c", "third").error
    assert "in the foreground" in sublet("logs", "pair", "-c", "side").error
    folder.log("side").parent.mkdir()
    folder.log("side").write_text("said\n")
    assert sublet("logs", "pair", "-c", "side").stdout == "said\n"


@pytest.mark.parametrize(
    ("command", "name"),
    [("/usr/bin/ffmpeg", "ffmpeg-0a1b2"), ("My Tool.py", "my-tool-py-0a1b2"), ("---", "pod-0a1b2"), ("ä", "pod-0a1b2")],
)
def test_a_pod_without_a_name_gets_one_from_its_command(command: str, name: str) -> None:
    assert run.made_name(command, "0a1b2c3d") == name


@pytest.mark.parametrize(
    ("error", "code"), [(Refused("pod x: bad"), 2), (Unavailable("pods: not there"), 3)], ids=["refused", "not there"]
)
def test_an_error_is_one_line_on_standard_error_and_a_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Refused | Unavailable, code: int
) -> None:
    def fail() -> None:
        raise error

    def register(app: typer.Typer) -> None:
        app.command()(fail)

    monkeypatch.setattr(cli, "modules_in", lambda _: {"fail": SimpleNamespace(register=register)})
    monkeypatch.setattr("sys.argv", ["sublet", "fail"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (code, f"sublet: {error}\n")
