"""Slips of an operator: a state folder that is something else's, a port that is taken, a typo. Others lose nothing."""

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slow_machines import patience_s

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.cgroup_kill import kill_group
from shared.core.cgroups.layout import ROOT, class_group
from shared.errors import SubletError
from shared.settings import CommonSettings
from sublet.exit_codes import FAILED, NOT_THERE, REFUSED
from sublet.host.preflight import check_host, take_host
from sublet.state.files import MARK, known

pytestmark = pytest.mark.timeout(400)
PATIENCE_S = patience_s(150.0)
ON_HOST = pytest.mark.skipif(bool(check_host(CommonSettings())), reason="needs root and writable cgroups")
PRECIOUS = [f"photo-{n}" for n in range(46)] + ["logs.old", "pods.yaml", ".ssh", "taints.json.bak"]


def sublet(state: Path, *words: str, **env: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "sublet", *words], env={**os.environ, "SUBLET_STATE_DIR": str(state), **env},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes that are killed at the end, if they still run."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def said(process: "subprocess.Popen[str]") -> tuple[int, str]:
    out = process.communicate(timeout=PATIENCE_S)[0]
    return process.returncode, out


def until(condition: Callable[[], object], process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def precious(folder: Path) -> dict[str, bytes]:
    """Fifty things of others."""
    for name in PRECIOUS:
        (folder / name).mkdir(parents=True)
        (folder / name / "a").write_text(name)
    return tree(folder)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        yield one.getsockname()[1]


@pytest.mark.parametrize("words", [("up", "--substrate", "sim", "--nats-port", "0"), ("down", "--forget")])
def test_a_folder_of_others_is_refused_and_left_as_it_is(tmp_path: Path, words: tuple[str, ...]) -> None:
    state = tmp_path / "state"
    before = precious(state)
    code, out = said(sublet(state, *words, SUBLET_SUBSTRATE="sim"))
    assert code == FAILED
    assert "take an empty folder" in out
    assert tree(state) == before


def test_a_run_makes_listed_names_only_and_its_stop_removes_nothing_else(
    tmp_path: Path, started: list["subprocess.Popen[str]"]
) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    (state / "config.yaml").write_text("{}")
    (state / "config.yaml").chmod(0o640)
    up = sublet(state, "up", "--substrate", "sim", "--nats-port", "0")
    started.append(up)
    until(lambda: all((state / name).exists() for name in ("cnr.json", "checkpoint.json", "ledger.db")), up)
    made = {path.name for path in state.iterdir()}
    assert [name for name in made if known(name) is None] == []
    open_to_others = [p for p in state.rglob("*") if "simhost" not in p.parts and p.lstat().st_mode & 0o007]
    assert open_to_others == []
    before = precious(state)
    up.send_signal(signal.SIGINT)
    code, out = said(up)
    assert (code, "nothing is left" in out) == (0, True), out
    after = tree(state)
    assert {name: text for name, text in after.items() if name in before and known(name.split("/")[0]) is None} == {
        name: text for name, text in before.items() if known(name.split("/")[0]) is None
    }
    assert {path.name for path in state.iterdir()} == {
        *PRECIOUS, "config.yaml", "ledger.db", "logs", "nats", "policy-past.json", MARK,
    }  # fmt: skip


def test_a_start_that_fails_leaves_a_folder_as_it_was_but_for_the_logs(tmp_path: Path, taken: int) -> None:
    state = tmp_path / "state"
    state.mkdir()
    for name in (MARK, "config.yaml", "checkpoint.json", "photo"):
        (state / name).write_text(name)
    before = tree(state)
    code, out = said(sublet(state, "up", "--substrate", "sim", "--nats-port", str(taken)))
    assert code == NOT_THERE, out
    assert {name: text for name, text in tree(state).items() if not name.startswith(("logs/", "nats/"))} == before


@pytest.mark.root
@ON_HOST
@pytest.mark.parametrize("slip", ["port taken", "typo"])
def test_a_start_that_fails_ends_no_pod_that_ran_before(tmp_path: Path, taken: int, slip: str) -> None:
    cgroups, state = Cgroups(Path("/")), tmp_path / "state"
    if cgroups.pids(ROOT):
        pytest.skip("a Sublet is up on this host, or its pods are")
    group = f"{class_group('reclaimed_cores')}/pod{uuid.uuid4()}"
    pod = subprocess.Popen(["sleep", "600"])
    try:
        cgroups.make(group)
        cgroups.attach(group, pod.pid)
        words = ("up", "--nats-port", str(taken) if slip == "port taken" else "0")
        code, out = said(sublet(state, *words, **({} if slip == "port taken" else {"SUBLET_QRM__NO_SUCH": "1"})))
        assert code == (NOT_THERE if slip == "port taken" else REFUSED), out
        assert pod.poll() is None
        assert cgroups.pids(group) == [pod.pid]
    finally:
        pod.kill()
        pod.wait()
        kill_group(cgroups, ROOT)
        end = time.monotonic() + PATIENCE_S
        while not cgroups.remove(ROOT) and time.monotonic() < end:
            time.sleep(0.05)


@pytest.mark.root
@ON_HOST
def test_down_with_another_state_folder_ends_no_pods_of_a_sublet_that_is_up(tmp_path: Path) -> None:
    try:
        held = take_host(CommonSettings())
    except SubletError:
        pytest.skip("a Sublet is up on this host")
    assert held is not None
    try:
        code, out = said(sublet(tmp_path / "other", "down"))
    finally:
        os.close(held)
    assert (code, "another Sublet manages the cgroups" in out) == (FAILED, True), out
    assert not (tmp_path / "other").exists()
