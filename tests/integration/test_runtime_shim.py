"""The watching process on the real kernel: inside the cgroup from the first instruction, exit codes, nothing left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pods_rig import HOST, ROOT_ONLY, gone, own_top, record, runtime, start_foreground, wait_for, watcher_pid
from present import present

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.local import shim
from shared.adapters.local.runtime import Runtime
from shared.adapters.local.stored_pod import StoredPod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import class_group, container_group, pod_group
from shared.core.pods.manifest import ContainerRun, PodRecord
from shared.errors import Conflict, Refused, Unfit

pytestmark = ROOT_ONLY
CGROUPS: Any = Cgroups(HOST) if Path("/sys/fs/cgroup/cpuset").is_dir() else None
"""None where no test of this module can run."""


@pytest.fixture
def top() -> Iterator[str]:
    with own_top() as name:
        yield name


@pytest.fixture
def pods(tmp_path: Path, top: str) -> Runtime:
    return runtime(tmp_path, top)


def _start(pods: Runtime, pod: PodRecord) -> StoredPod:
    pods.start(pod, env=os.environ)
    return present(pods.pods.get(pod.pod.uid))


def _finished(pods: Runtime, pod: PodRecord) -> StoredPod:
    wait_for(lambda: present(pods.pods.get(pod.pod.uid)).status.finished)
    return present(pods.pods.get(pod.pod.uid))


def _nothing_left(pods: Runtime, top: str) -> bool:
    children = {q: CGROUPS.children(class_group(q, top)) for q in ("shared_cores", "reclaimed_cores")}
    return children == {"shared_cores": [], "reclaimed_cores": []} and pods.pods.stored() == []


def _memberships(text: str) -> dict[str, str]:
    """Controller to cgroup, of the controllers that Sublet uses."""
    rows = (line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2)
    return {name: path for _, names, path in rows for name in names.split(",") if name in CGROUPS.controllers}


@pytest.mark.parametrize("foreground", [False, True], ids=["detached", "foreground"])
def test_the_first_act_of_a_command_finds_itself_in_its_cgroup_of_every_hierarchy(
    pods: Runtime, top: str, tmp_path: Path, foreground: bool
) -> None:
    pod = record("first", "cat", "/proc/self/cgroup")
    if foreground:
        said = start_foreground(tmp_path, top, pod).communicate()[0]
    else:
        _start(pods, pod)
        said = _finished(pods, pod).folder.log("main").read_text()
    expected = f"/{container_group(pod.pod, 'main', top)}"
    assert _memberships(said) == dict.fromkeys(CGROUPS.controllers, expected)


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
    ids=["success", "failure", "killed", "terminated"],
)
def test_the_foreground_passes_the_exit_code_on_and_leaves_nothing(
    pods: Runtime, top: str, tmp_path: Path, script: str, code: int
) -> None:
    process = start_foreground(tmp_path, top, record("job", "sh", "-c", script))
    process.communicate()
    assert process.returncode == code
    assert _nothing_left(pods, top)


@pytest.mark.parametrize(
    ("command", "code", "word"),
    [(("no-such-command",), 127, "No such file"), (("/dev/null",), 126, "Permission denied")],
    ids=["not found", "not executable"],
)
def test_a_command_that_cannot_run_is_named_with_the_shells_exit_code(
    pods: Runtime, top: str, tmp_path: Path, command: tuple[str, ...], code: int, word: str
) -> None:
    process = start_foreground(tmp_path, top, record("job", *command))
    said = process.communicate()[1]
    assert (process.returncode, word in said, "default/job" in said) == (code, True, True)
    assert _nothing_left(pods, top)
    with pytest.raises(Refused, match=word):
        _start(pods, record("job", *command))
    assert _nothing_left(pods, top)


def test_standard_input_and_output_are_the_commands(top: str, tmp_path: Path) -> None:
    assert start_foreground(tmp_path, top, record("cat", "cat")).communicate("through\n")[0] == "through\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_the_foreground_reaches_the_command(top: str, tmp_path: Path, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got; exit 42' {name}; echo ready; while :; do sleep 0.01; done"
    process = start_foreground(tmp_path, top, record("trap", "sh", "-c", script), start_new_session=True)
    assert present(process.stdout).readline() == "ready\n"
    process.send_signal(number)
    assert process.communicate()[0] == "got\n"
    assert process.returncode == 42


def test_a_signal_to_the_foreground_before_the_command_runs_is_not_lost(
    pods: Runtime, top: str, tmp_path: Path
) -> None:
    process = start_foreground(tmp_path, top, record("early", "sleep", "300"))
    wait_for(pods.pods.stored)
    process.terminate()
    process.communicate()
    assert process.returncode == 143
    assert _nothing_left(pods, top)


def test_a_detached_pod_outlives_its_starter_and_its_output_is_kept(pods: Runtime, top: str, tmp_path: Path) -> None:
    pod = record("long", "sh", "-c", "echo out; echo err >&2; sleep 300")
    program = (
        "import sys; from pods_rig import *;"
        "runtime(Path(sys.argv[1]), sys.argv[2]).start(PodRecord.model_validate_json(sys.argv[3]), env=os.environ)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    arguments = [sys.executable, "-c", program, str(tmp_path), top, pod.model_dump_json()]
    subprocess.run(arguments, env=env, check=True, start_new_session=True)
    stored = pods.pods.find("long")
    assert (stored.status.phase, stored.folder.watched()) == ("Running", True)
    assert stored.status.containers["main"].pid in CGROUPS.pids(pod_group(pod.pod, top))
    wait_for(lambda: stored.folder.log("main").read_text() == "out\nerr\n")


def test_what_the_main_process_leaves_behind_ends_with_it(pods: Runtime, top: str) -> None:
    pod = record("daemon", "sh", "-c", "setsid sleep 300 & sleep 300 & exit 5")
    _start(pods, pod)
    stored = _finished(pods, pod)
    assert (stored.status.phase, stored.status.containers["main"].exit_code) == ("Failed", 5)
    assert CGROUPS.pids(top) == []
    assert not CGROUPS.exists(pod_group(pod.pod, top))


def _with_side(pod: PodRecord, *command: str) -> PodRecord:
    """The pod with a second container."""
    second = pod.pod.containers[0].model_copy(update={"name": "side"})
    return pod.model_copy(
        update={
            "pod": pod.pod.model_copy(update={"containers": (*pod.pod.containers, second)}),
            "runs": (*pod.runs, ContainerRun(name="side", command=command)),
        }
    )


def test_a_pod_of_several_containers_succeeds_when_all_do(pods: Runtime, top: str) -> None:
    pod = _with_side(record("pair", "sh", "-c", "echo one"), "sh", "-c", "echo two")
    _start(pods, pod)
    stored = _finished(pods, pod)
    assert stored.status.phase == "Succeeded"
    assert [stored.folder.log(name).read_text() for name in ("main", "side")] == ["one\n", "two\n"]


def test_what_one_container_leaves_behind_ends_while_the_other_runs_on(pods: Runtime, top: str) -> None:
    pod = _with_side(record("pair", "sh", "-c", "setsid sleep 300 & exit 0"), "sleep", "300")
    _start(pods, pod)
    wait_for(lambda: present(pods.pods.get(pod.pod.uid)).status.containers["main"].exit_code == 0)
    assert CGROUPS.pids(container_group(pod.pod, "main", top)) == []
    assert CGROUPS.pids(container_group(pod.pod, "side", top))
    assert present(pods.pods.get(pod.pod.uid)).status.phase == "Running"


def test_if_one_container_cannot_run_the_other_is_ended_and_nothing_is_left(
    pods: Runtime, top: str, tmp_path: Path
) -> None:
    pod = _with_side(record("half", "sleep", "300"), "no-such-command")
    with pytest.raises(Refused, match="side"):
        _start(pods, pod)
    assert CGROUPS.pids(top) == []
    assert _nothing_left(pods, top)


def test_a_pod_that_is_being_ended_already_starts_nothing(pods: Runtime, top: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    pod = record("late", "touch", str(trace))
    folder, alive = pods._prepare(pod)
    assert pods.pods.mark_terminating(pod.pod.uid, 5.0, "Evicted")
    with alive:
        command = [sys.executable, "-m", shim.__name__, str(folder.path), str(alive.fileno())]
        process = subprocess.run(command, pass_fds=[alive.fileno()], check=False, capture_output=True, text=True)
    assert (process.returncode, trace.exists()) == (143, False)
    assert "evicted" in process.stderr
    assert _nothing_left(pods, top)


def test_a_pod_that_is_being_started_is_not_taken_for_a_dead_one(pods: Runtime, top: str) -> None:
    pod = record("young")
    folder, alive = pods._prepare(pod)
    with alive:
        pods.reconcile()
        assert present(pods.pods.get(folder.uid)).status.phase == "Pending"
        assert CGROUPS.exists(pod_group(pod.pod, top))
    pods.reconcile()
    assert present(pods.pods.get(folder.uid)).status.reason == "Lost"
    assert not CGROUPS.exists(pod_group(pod.pod, top))


def test_settings_are_in_force_before_the_command_runs(pods: Runtime, top: str) -> None:
    amounts: dict[str, Any] = {"cpu_request_millis": 500, "cpu_limit_millis": 1500, "memory_request_bytes": 64 << 20}
    tenant = record("web", qos="shared_cores", **amounts, memory_limit_bytes=128 << 20)
    batch = record("encode", **amounts)
    for pod in (tenant, batch):
        _start(pods, pod)
    web, encode = (container_group(pod.pod, "main", top) for pod in (tenant, batch))
    assert CGROUPS.read(web, Knob.CPU_SHARES) == CGROUPS.read(encode, Knob.CPU_SHARES) == 512
    assert CGROUPS.read(pod_group(tenant.pod, top), Knob.CPU_SHARES) == 512
    assert (CGROUPS.read(web, Knob.CPU_QUOTA), CGROUPS.read(encode, Knob.CPU_QUOTA)) == (1500, -1)
    assert (CGROUPS.read(web, Knob.MEMORY_MAX), CGROUPS.read(encode, Knob.MEMORY_MAX)) == (128 << 20, 64 << 20)


@pytest.mark.parametrize(
    ("qos", "score"),
    [("reclaimed_cores", "900"), ("shared_cores", "0"), ("dedicated_cores", "0"), ("system_cores", "0")],
)
def test_the_kernel_is_told_whom_to_end_first(pods: Runtime, qos: str, score: str) -> None:
    pod = record("score", "cat", "/proc/self/oom_score_adj", qos=qos)
    _start(pods, pod)
    assert _finished(pods, pod).folder.log("main").read_text().strip() == score


def test_a_pod_that_takes_more_memory_than_its_limit_is_said_to_have_been_killed_for_it(pods: Runtime) -> None:
    pod = record("greedy", sys.executable, "-c", "b'x' * (256 << 20)", memory_request_bytes=48 << 20)
    _start(pods, pod)
    status = _finished(pods, pod).status
    container = status.containers["main"]
    assert (container.exit_code, container.reason) == (137, "OOMKilled")
    assert status.message == "the pod used more than its memory limit 48Mi"


def test_in_the_foreground_it_is_said_where_it_happened_and_the_record_stays(
    pods: Runtime, top: str, tmp_path: Path
) -> None:
    pod = record("greedy", sys.executable, "-c", "b'x' * (256 << 20)", memory_request_bytes=48 << 20)
    process = start_foreground(tmp_path, top, pod)
    said = process.communicate()[1]
    assert (process.returncode, said) == (
        137,
        "sublet: pod default/greedy was killed: the pod used more than its memory limit 48Mi (137); "
        "see: sublet explain pod/greedy\n",
    )
    stored = pods.pods.find("greedy")
    assert (stored.status.phase, stored.status.containers["main"].reason) == ("Failed", "OOMKilled")
    again = start_foreground(tmp_path, top, record("greedy", "true"))
    assert (again.communicate()[1], again.returncode) == ("", 0), "its name is free"


def test_a_kill_from_outside_is_not_taken_for_one_for_memory(pods: Runtime, top: str, tmp_path: Path) -> None:
    process = start_foreground(tmp_path, top, record("shot", "sh", "-c", "kill -9 $$", memory_request_bytes=48 << 20))
    assert (process.communicate()[1], process.returncode) == ("", 137)
    assert pods.pods.stored() == []


@pytest.mark.parametrize("amount", [1, 4 << 10, (1 << 20) - 1])
def test_a_memory_limit_in_which_nothing_starts_is_refused_before_a_cgroup_is_made(
    pods: Runtime, top: str, amount: int
) -> None:
    with pytest.raises(Refused, match=rf"pod default/tiny: memory {amount} bytes: want at least 1Mi"):
        _start(pods, record("tiny", "true", memory_request_bytes=amount))
    assert _nothing_left(pods, top)


def test_the_least_memory_is_enough_for_a_small_program(pods: Runtime) -> None:
    pod = record("small", "true", memory_request_bytes=1 << 20)
    _start(pods, pod)
    assert _finished(pods, pod).status.phase == "Succeeded"


def test_a_setting_that_the_kernel_refuses_leaves_nothing(pods: Runtime, top: str) -> None:
    CGROUPS.write(class_group("shared_cores", top), Knob.CPU_QUOTA, 500)
    with pytest.raises(Unfit, match="default/web"):
        _start(pods, record("web", qos="shared_cores", cpu_limit_millis=2000))
    assert _nothing_left(pods, top)


def test_before_sublet_is_up_the_next_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unfit, match="sudo sublet up"):
        runtime(tmp_path, "sublet-test-nowhere").start(record("early"), env={})
    assert not (tmp_path / "pods").exists()


def test_a_running_pod_keeps_its_name(pods: Runtime, top: str) -> None:
    first = record("one")
    _start(pods, first)
    with pytest.raises(Conflict, match="sublet delete pod/one"):
        _start(pods, record("one"))
    assert CGROUPS.children(class_group("reclaimed_cores", top)) == [f"pod{first.pod.uid}"]


def test_after_the_watchers_death_a_pod_runs_on_and_is_closed_when_its_processes_have_ended(
    pods: Runtime, top: str
) -> None:
    pod = record("orphan", "sleep", "300")
    stored = _start(pods, pod)
    watcher = watcher_pid(stored.folder.path)
    os.kill(watcher, signal.SIGKILL)
    wait_for(lambda: not stored.folder.watched())
    pods.reconcile()
    assert [p.key for p in pods.pods.pods()] == ["default/orphan"]
    main = present(stored.status.containers["main"].pid)
    os.kill(main, signal.SIGKILL)
    wait_for(lambda: gone(main))
    pods.reconcile()
    closed = present(pods.pods.get(pod.pod.uid))
    assert (closed.status.phase, closed.status.reason) == ("Failed", "Lost")
    assert not CGROUPS.exists(pod_group(pod.pod, top))


def test_the_watcher_copes_with_a_state_directory_that_is_taken_away(pods: Runtime, top: str, tmp_path: Path) -> None:
    pod = record("bare", "sleep", "300")
    stored = _start(pods, pod)
    watcher = watcher_pid(stored.folder.path)
    pods.pods.path.rename(tmp_path / "elsewhere")
    os.kill(present(stored.status.containers["main"].pid), signal.SIGTERM)
    wait_for(lambda: gone(watcher))
    assert not CGROUPS.exists(pod_group(pod.pod, top))
    assert (tmp_path / "elsewhere" / pod.pod.uid / "shim.log").read_text() == ""
