"""Transparent offloading: the decision, its laws, and the hands on a tree of files."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.qrm.adapters.offload.offloader import PIECE_BYTES, CgroupOffloader, ReclaimResult
from services.qrm.core.memory.offload import (
    MemoryReading,
    OffloadPace,
    OffloadRules,
    next_step,
    pressure_percent,
    refault_pages,
)
from shared.adapters.host.cgroup import Cgroups
from shared.errors import Refused

MIB = 1 << 20
RULES = OffloadRules()
KNOWN = OffloadPace(refaults=(0.0, 100))
QUIET = MemoryReading(usage_bytes=1000 * MIB, pressure_percent=0.0, refault_pages=100)


@pytest.mark.parametrize(
    ("pace", "seen", "want", "why"),
    [
        pytest.param(KNOWN, QUIET, 10 * MIB, "quiet", id="a hundredth of the use"),
        pytest.param(KNOWN, replace(QUIET, pressure_percent=0.05), 5 * MIB, "quiet", id="half way to the target"),
        pytest.param(replace(KNOWN, boldness=0.5), QUIET, 5 * MIB, "quiet", id="less bold"),
        pytest.param(KNOWN, replace(QUIET, usage_bytes=100_000 * MIB), 64 * MIB, "quiet", id="never a large step"),
        pytest.param(KNOWN, replace(QUIET, usage_bytes=65 * MIB), 0, "too little to give back", id="too little"),
        pytest.param(
            KNOWN, replace(QUIET, pressure_percent=0.1), 0, "pressure is at its target", id="at the target: back off"
        ),
        pytest.param(
            KNOWN, replace(QUIET, refault_pages=100 + 2561), 0, "memory given back is read in again", id="refaults"
        ),
        pytest.param(KNOWN, replace(QUIET, refault_pages=100 + 2560), 10 * MIB, "quiet", id="as many as are borne"),
        pytest.param(replace(KNOWN, resume_s=11), QUIET, 0, "pause", id="a pause"),
        pytest.param(replace(KNOWN, resume_s=10), QUIET, 10 * MIB, "quiet", id="the pause is over"),
        pytest.param(KNOWN, replace(QUIET, usage_bytes=None), 0, "a figure is missing", id="use unknown"),
        pytest.param(KNOWN, replace(QUIET, pressure_percent=None), 0, "a figure is missing", id="pressure unknown"),
        pytest.param(KNOWN, replace(QUIET, refault_pages=None), 0, "a figure is missing", id="refaults unknown"),
        pytest.param(OffloadPace(), QUIET, 0, "a figure is missing", id="the first look"),
        pytest.param(KNOWN, replace(QUIET, refault_pages=99), 0, "a figure is missing", id="the counter went back"),
    ],
)
def test_a_step(pace: OffloadPace, seen: MemoryReading, want: int, why: str) -> None:
    decision = next_step(pace, RULES, 10.0, seen)
    assert (decision.bytes, decision.why) == (want, why)


def test_after_a_step_too_far_there_is_a_pause_and_a_stride_of_half_that_grows_again() -> None:
    noisy = next_step(KNOWN, RULES, 10.0, replace(QUIET, pressure_percent=9.0))
    still = next_step(noisy.pace, RULES, 20.0, replace(QUIET, pressure_percent=9.0))
    assert (still.pace.boldness, still.pace.resume_s) == (0.5, 80.0)
    calm = next_step(still.pace, RULES, 80.0, QUIET)
    assert calm.bytes == 5 * MIB
    assert calm.pace.boldness == pytest.approx(0.525)
    assert next_step(replace(calm.pace, boldness=0.99), RULES, 90.0, QUIET).pace.boldness == 1.0


def test_a_group_is_never_asked_to_go_below_what_it_keeps() -> None:
    rules = replace(RULES, stride=0.5)
    assert next_step(KNOWN, rules, 10.0, replace(QUIET, usage_bytes=70 * MIB)).bytes == 6 * MIB
    assert next_step(KNOWN, rules, 10.0, replace(QUIET, usage_bytes=64 * MIB)).bytes == 0


seens = st.builds(
    MemoryReading,
    st.none() | st.integers(0, 1 << 45),
    st.none() | st.floats(0, 100),
    st.none() | st.integers(0, 1 << 40),
)


@given(st.lists(st.tuples(st.floats(0, 120), seens), max_size=30))
def test_a_step_is_bounded_and_nothing_is_taken_from_a_group_that_suffers(
    looks: list[tuple[float, MemoryReading]],
) -> None:
    pace, now_s = OffloadPace(), 0.0
    for after_s, seen in looks:
        now_s += after_s
        before, decision = pace, next_step(pace, RULES, now_s, seen)
        pace = decision.pace
        assert 0 < pace.boldness <= 1
        assert decision.bytes % 4096 == 0
        if decision.bytes:
            assert RULES.least_bytes <= decision.bytes <= RULES.most_bytes
            usage = present(seen.usage_bytes)
            assert usage - decision.bytes >= RULES.keep_bytes
            assert decision.bytes <= usage * RULES.stride
            assert present(seen.pressure_percent) < RULES.target_percent
            assert before.resume_s is None or now_s >= before.resume_s


@given(st.integers(0, 1 << 40), st.floats(0, 1), st.floats(0, 1))
def test_more_pressure_never_makes_a_larger_step(usage: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    steps = [next_step(KNOWN, RULES, 10.0, MemoryReading(usage, pressure, 100)).bytes for pressure in (low, high)]
    assert steps[0] >= steps[1]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("some avg10=1.25 avg60=0.10 avg300=0.00 total=5\nfull avg10=9.00\n", 1.25, id="as the kernel"),
        pytest.param("full avg10=9.00 avg60=0.00\n", None, id="no line of it"),
        pytest.param("some avg10=x\n", None, id="no number"),
        pytest.param("", None, id="empty"),
    ],
)
def test_the_pressure_of_a_file(text: str, want: float | None) -> None:
    assert pressure_percent(text) == want


@pytest.mark.parametrize(
    ("stat", "want"),
    [
        pytest.param({"workingset_refault_anon": "3", "workingset_refault_file": "4"}, 7, id="both"),
        pytest.param({"workingset_refault_file": "4"}, 4, id="one"),
        pytest.param({"workingset_refault_anon": "x", "workingset_refault_file": "4"}, None, id="no number"),
        pytest.param({}, None, id="none"),
    ],
)
def test_refaults_of_a_stat_file(stat: dict[str, str], want: int | None) -> None:
    assert refault_pages(stat) == want


class Kernel:
    """Takes writes to `memory.reclaim`, and answers after so many bytes with an error."""

    def __init__(self, error: int = 0, after_bytes: int = 0) -> None:
        self.error, self.left = error, after_bytes
        self.writes: list[tuple[str, int]] = []

    def __call__(self, path: Path, text: str) -> None:
        if self.error and self.left < int(text):
            raise OSError(self.error, "no")
        self.left -= int(text)
        self.writes.append((path.parent.name, int(text)))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "sys/fs/cgroup"
    (root / "batch").mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory\n")
    files = {
        "memory.current": f"{4000 * MIB}\n",
        "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        "memory.stat": "anon 5\nworkingset_refault_anon 1\nworkingset_refault_file 2\n",
        "memory.reclaim": "",
    }
    for name, text in files.items():
        (root / "batch" / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("kernel", "want"),
    [
        pytest.param(Kernel(), ReclaimResult(40 * MIB, 40 * MIB, "done"), id="all of it"),
        pytest.param(Kernel(errno.EAGAIN, 32 * MIB), ReclaimResult(40 * MIB, 32 * MIB, "partial"), id="part of it"),
        pytest.param(Kernel(errno.EAGAIN), ReclaimResult(40 * MIB, 0, "partial"), id="nothing left"),
        pytest.param(Kernel(errno.ENOENT), ReclaimResult(40 * MIB, 0, "absent"), id="an old kernel"),
        pytest.param(Kernel(errno.ENODEV), ReclaimResult(40 * MIB, 0, "absent"), id="the cgroup went away"),
        pytest.param(Kernel(errno.EINVAL), ReclaimResult(40 * MIB, 0, "refused"), id="refused"),
    ],
)
def test_a_step_is_written_in_pieces_until_the_kernel_has_no_more(
    tree: Path, kernel: Kernel, want: ReclaimResult
) -> None:
    offloader = CgroupOffloader(Cgroups(tree), kernel)
    (first, _), (second, done) = offloader.step("batch", RULES, 0.0), offloader.step("batch", RULES, 10.0)
    assert (first.bytes, second.bytes) == (0, 40 * MIB)
    assert replace(done, why="") == want
    assert all(size <= PIECE_BYTES for _, size in kernel.writes)
    assert sum(size for _, size in kernel.writes) == want.given_bytes


def test_it_writes_to_the_file_that_is_there_and_makes_none(tree: Path) -> None:
    offloader = CgroupOffloader(Cgroups(tree))
    assert offloader.reclaim("batch", 5 * MIB).status == "done"
    assert (tree / "sys/fs/cgroup/batch/memory.reclaim").read_text() == str(5 * MIB)
    (tree / "sys/fs/cgroup/batch/memory.reclaim").unlink()
    assert offloader.reclaim("batch", 5 * MIB).status == "absent"
    assert offloader.reclaim("gone", 5 * MIB).status == "absent"
    assert not (tree / "sys/fs/cgroup/batch/memory.reclaim").exists()


def test_a_name_that_leaves_the_root_is_refused(tree: Path) -> None:
    with pytest.raises(Refused):
        CgroupOffloader(Cgroups(tree)).reclaim("../batch", MIB)


def test_what_cannot_be_read_is_not_known(tree: Path) -> None:
    for name in ("memory.current", "memory.pressure", "memory.stat"):
        (tree / "sys/fs/cgroup/batch" / name).unlink()
    assert CgroupOffloader(Cgroups(tree)).observe("batch") == MemoryReading()


def test_a_group_that_came_back_is_looked_at_anew(tree: Path) -> None:
    offloader = CgroupOffloader(Cgroups(tree), Kernel())
    offloader.step("batch", RULES, 0.0)
    offloader.forget(frozenset())
    assert offloader.step("batch", RULES, 10.0)[0].bytes == 0


def test_cgroup_v1_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup/cpuset").mkdir(parents=True)
    offloader = CgroupOffloader(Cgroups(tmp_path), Kernel())
    decision, done = offloader.step("batch", RULES, 0.0)
    assert (decision.bytes, done.status) == (0, "absent")
