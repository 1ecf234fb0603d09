"""Signals go to the processes of a cgroup and to nobody else, whatever happens between looking and sending."""

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.cgroup_kill import kill_group, signal_group


class Listing(Cgroups):
    """A cgroup whose list of processes is given, look by look; the last look repeats."""

    version = 1

    def __init__(self, *looks: list[int]) -> None:
        self.looks = list(looks)

    def pids(self, _group: str) -> list[int]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(["sleep", "300"])
    yield running
    running.kill()
    running.wait()


def test_who_is_in_the_cgroup_gets_the_signal(process: subprocess.Popen[bytes]) -> None:
    assert signal_group(Listing([process.pid]), "g", signal.SIGTERM) == 1
    assert process.wait() == -signal.SIGTERM


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The signals that would have been sent."""
    numbers = []
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda _handle, number: numbers.append(number))
    return numbers


def test_a_number_that_now_belongs_to_a_stranger_is_not_signalled(
    process: subprocess.Popen[bytes], sent: list[Any]
) -> None:
    assert signal_group(Listing([process.pid], []), "g", signal.SIGKILL) == 0
    assert sent == []


def test_a_child_born_between_two_looks_is_counted_so_that_the_caller_comes_again(
    process: subprocess.Popen[bytes], sent: list[Any]
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert signal_group(Listing([ended.pid], [process.pid]), "g", signal.SIGKILL) == 1
    assert sent == []


def test_a_kernel_without_process_descriptors_will_do(
    process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_pid: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", missing)
    assert signal_group(Listing([process.pid]), "g", signal.SIGTERM) == 1
    assert process.wait() == -signal.SIGTERM


def test_an_empty_cgroup_has_nobody_to_signal() -> None:
    assert signal_group(Listing([]), "g", signal.SIGKILL) == 0


def test_where_the_kernel_kills_a_whole_cgroup_it_is_asked_to(tmp_path: Path) -> None:
    group = tmp_path / "sys/fs/cgroup/pod"
    group.mkdir(parents=True)
    (group.parent / "cgroup.controllers").write_text("cpu memory")
    (group / "cgroup.kill").write_text("")
    (group / "cgroup.procs").write_text("")
    assert kill_group(Cgroups(tmp_path), "pod") == 0
    assert (group / "cgroup.kill").read_text() == "1"
