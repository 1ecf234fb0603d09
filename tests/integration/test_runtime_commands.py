"""The pod commands on the real kernel, from YAML to the log."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pods_rig import HOST, ROOT_ONLY, own_top, runtime, wait_for
from typer.testing import CliRunner

from shared.adapters.files.taints import TaintFile
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.local.log_times import read_times
from shared.adapters.local.runtime import Runtime
from shared.contracts.kube.taint import Taint
from sublet import cli
from sublet.commands import apply, delete, get, logs, run
from sublet.pods.applying import PlacedDocument, apply_pods

pytestmark = ROOT_ONLY
MODULES = {"run": run, "apply": apply, "get": get, "logs": logs, "delete": delete}


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    with own_top() as top:
        monkeypatch.setattr("shared.adapters.local.runtime.open_runtime", lambda _common: runtime(tmp_path, top))
        yield runtime(tmp_path, top)


def sublet(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.build(MODULES), list(arguments), input=stdin, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def _document(name: str, *command: str, qos: str = "reclaimed_cores") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"katalyst.kubewharf.io/qos_level": qos}},
        "spec": {"containers": [{"name": "main", "image": "any", "command": list(command)}]},
    }


def test_from_the_file_to_the_log_to_the_end(pods: Runtime) -> None:
    text = yaml.dump_all([_document("talks", "sh", "-c", "echo hello; sleep 300"), _document("other", "sleep", "300")])
    code, said, notes = sublet("apply", "-f", "-", stdin=text)
    assert (code, said) == (0, "pod/talks created\npod/other created\n")
    assert notes.count("image is left out") == 2
    assert [line.split()[5] for line in sublet("get", "pods")[1].splitlines()] == ["STATUS", "Running", "Running"]
    wait_for(lambda: sublet("logs", "talks")[1] == "hello\n")
    assert sublet("delete", "pod/talks", "other", "--grace-period", "5")[1] == "pod/talks deleted\npod/other deleted\n"
    assert Cgroups(HOST).pids(pods.top) == []
    assert pods.pods.stored() == []


async def _taint(pods: Runtime) -> None:
    taint = Taint(key="node.katalyst.kubewharf.io/MemoryPressure", effect="NoSchedule")
    await TaintFile(pods.common.state_dir).write([taint])


def test_while_the_node_is_tainted_tenants_start_batch_pods_do_not_and_nothing_that_runs_is_touched(
    pods: Runtime,
) -> None:
    sublet("run", "-d", "--name", "before", "--", "sleep", "300")
    asyncio.run(_taint(pods))
    code, _, said = sublet("run", "-d", "--name", "batch", "--", "sleep", "300")
    assert (code, "takes no reclaimed pods" in said) == (125, True)
    code, said, _ = sublet("run", "-d", "--qos", "shared", "--name", "web", "--", "sleep", "300")
    assert (code, said) == (0, "pod/web started\n")
    TaintFile(pods.common.state_dir).path.unlink()
    assert sublet("run", "-d", "--name", "after", "--", "sleep", "300")[0] == 0
    shown = [(stored.record.pod.name, stored.status.phase) for stored in pods.pods.stored()]
    assert shown == [("after", "Running"), ("before", "Running"), ("web", "Running")]


def test_a_file_with_one_pod_that_cannot_run_starts_none(pods: Runtime) -> None:
    from shared.errors import Refused

    text = yaml.dump_all([_document("good", "sleep", "300"), _document("bad", "no-such-command")])
    with pytest.raises(Refused, match="no-such-command"):
        sublet("apply", "-f", "-", stdin=text)
    assert Cgroups(HOST).pids(pods.top) == []
    assert pods.pods.stored() == []


def test_a_finished_pod_is_run_anew_and_a_changed_one_is_not_replaced(pods: Runtime) -> None:
    from shared.errors import Conflict

    document = yaml.dump(_document("again", "true"))
    sublet("apply", "-f", "-", stdin=document)
    wait_for(lambda: pods.pods.find("again").status.finished)
    first = pods.pods.find("again").record.pod.uid
    sublet("apply", "-f", "-", stdin=yaml.dump(_document("again", "sleep", "300")))
    assert pods.pods.find("again").record.pod.uid != first
    with pytest.raises(Conflict, match="sublet delete pod/again"):
        sublet("apply", "-f", "-", stdin=document)


def test_a_detached_run_keeps_folder_and_environment_of_its_caller(
    pods: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FROM_CALLER", "1")
    command = ("sh", "-c", 'echo "$PWD $FROM_CALLER $FROM_OPTION"')
    assert sublet("run", "-d", "--name", "env", "-e", "FROM_OPTION=2", "--", *command)[:2] == (0, "pod/env started\n")
    wait_for(lambda: pods.pods.find("env").status.finished)
    assert sublet("logs", "env")[1] == f"{tmp_path} 1 2\n"


def test_following_a_log_ends_with_the_pod(pods: Runtime) -> None:
    sublet("run", "-d", "--name", "slow", "--", "sh", "-c", "echo one; sleep 0.3; echo two")
    assert sublet("logs", "-f", "slow")[1] == "one\ntwo\n"


def test_a_log_has_times_while_its_pod_runs_and_stays_for_the_next_pod_of_its_name(pods: Runtime) -> None:
    sublet("run", "-d", "--name", "web", "--", "sh", "-c", "echo one; exec sleep 300")
    wait_for(lambda: read_times(pods.pods.find("web").folder.log("main")).known_bytes == len("one\n"))
    assert sublet("logs", "web", "--timestamps", "--since", "1h")[1].endswith("Z one\n")
    assert sublet("logs", "web", "--since-time", "2100-01-01")[1] == ""
    for word in ("first", "second"):
        sublet("run", "-d", "--name", "job", "--", "echo", word)
        wait_for(lambda: pods.pods.find("job").status.finished)
    assert (sublet("logs", "job", "-p")[1], sublet("logs", "job")[1]) == ("first\n", "second\n")
    assert sublet("logs", "job", "-p", "--timestamps")[1].endswith("Z first\n")


def test_a_foreground_run_is_the_command_itself(pods: Runtime, tmp_path: Path) -> None:
    program = (
        "import sys, shared.adapters.local.runtime as module; from pods_rig import *; from sublet.cli import main;"
        "state_dir, top = sys.argv[1:3];"
        "module.open_runtime = lambda _common: runtime(Path(state_dir), top);"
        "sys.argv[1:] = sys.argv[3:]; main()"
    )
    command = ["run", "--qos", "shared", "--name", "web", "--", "sh", "-c", "read line; echo got $line; exit 9"]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), pods.top, *command],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}, input="this\n",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (9, "got this\n", "")
    assert pods.pods.stored() == []


@pytest.mark.parametrize(("fallback", "qos"), [("shared_cores", "shared_cores"), ("kubernetes", "reclaimed_cores")])
def test_a_pod_that_names_no_class_is_what_the_node_says(pods: Runtime, fallback: str, qos: str) -> None:
    pods.common = pods.common.model_copy(update={"qos_fallback": fallback})
    document = _document("plain", "sleep", "300")
    del document["metadata"]["annotations"]
    apply_pods(pods, [PlacedDocument(document, "plain.yaml")], note=lambda _note: None)
    (stored,) = pods.pods.stored()
    assert stored.record.pod.qos == qos
