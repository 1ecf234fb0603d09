"""What the kernel gives the event loop before others, on this kernel: real time within bounds, or less."""

import os
import signal
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from present import present
from slow_machines import patience_s

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.scheduling import BEST_NICE, give_best_nice

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

_ASK = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
# In a child: this process stays as it is. Root may be refused, too, in a group without real time.
_TRIED = [sys.executable, "-c", _ASK]
_GIVEN = os.geteuid() == 0 and not subprocess.run(_TRIED, capture_output=True, check=False).returncode
realtime = pytest.mark.skipif(not _GIVEN, reason="needs a kernel that permits real time here")
NOBODY = 65534
PROLOGUE = """
import asyncio, collections, itertools, os, subprocess, sys, threading
from shared.adapters.host.scheduling import LoopScheduling

def policy():
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK

def nice():
    return os.getpriority(os.PRIO_PROCESS, 0)

async def main():
{body}

asyncio.run(main())
"""

TWO_THREADS = """
import sys, threading
threading.Thread(target=sys.stdin.readline).start()
print("up", flush=True)
"""


def run(body: str, *, user: int | None = None, group: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run lines as the inside of a loop, in a process of their own: what this one has stays as it is."""
    words = ["setpriv", "--reuid", str(user), "--clear-groups", "--bounding-set", "-all"] if user is not None else []
    program = PROLOGUE.format(body=textwrap.indent(textwrap.dedent(body), "    "))
    if group is not None:
        program = f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')\n{program}"
    return subprocess.run(
        [*words, sys.executable, "-c", program], capture_output=True, text=True, timeout=patience_s(60), check=False
    )


@pytest.fixture
def group() -> Iterator[Path]:
    """A group that may have no real time: this kernel gives each its own, and a new one none."""
    if not os.access("/sys/fs/cgroup/cpuset/cgroup.procs", os.W_OK):
        pytest.skip("needs cgroup v1")
    cgroups, name = Cgroups(Path("/")), f"sublet-test-{uuid.uuid4().hex[:8]}"
    cgroups.make(name)
    folder = cgroups.folder(name, "cpu")
    try:
        if not (folder / "cpu.rt_runtime_us").exists():
            pytest.skip("needs a kernel with CONFIG_RT_GROUP_SCHED")
        yield folder
    finally:
        assert cgroups.remove(name)


@realtime
def test_the_loop_alone_has_real_time_and_its_threads_the_best_nice_value() -> None:
    done = run("""
        scheduling = LoopScheduling("auto")
        with scheduling.taken():
            thread = await asyncio.to_thread(lambda: (policy() == os.SCHED_OTHER, nice()))
            child = subprocess.run([sys.executable, "-c", "import os; print(os.sched_getscheduler(0), os.nice(0))"],
                                   capture_output=True, text=True).stdout.split()
            print(scheduling.given, policy() == os.SCHED_RR, *thread, *child)
        print(policy() == os.SCHED_OTHER, nice())
    """)
    assert done.stdout.splitlines()[-2:] == ["realtime True True -20 0 0", "True 0"], done.stderr


def test_what_is_started_does_not_inherit_the_best_nice_value() -> None:
    done = run("""
        begun = [sys.executable, "-c", "import os; print(os.sched_getscheduler(0), os.nice(0))"]
        scheduling = LoopScheduling("nice")
        with scheduling.taken():
            of_loop = subprocess.run(begun, capture_output=True, text=True).stdout.split()
            of_thread = (await asyncio.to_thread(subprocess.run, begun, capture_output=True, text=True)).stdout.split()
            print(scheduling.given, policy() == os.SCHED_OTHER, nice(), *of_loop, *of_thread)
        print(os.sched_getscheduler(0) == os.SCHED_OTHER, nice())
    """)
    assert done.stdout.splitlines()[-2:] == ["nice True -20 0 0 0 0", "True 0"], done.stderr


def test_nothing_is_asked_for_where_nothing_is_wanted() -> None:
    done = run("""
        with LoopScheduling("none").taken():
            print(policy() == os.SCHED_OTHER, nice(), await asyncio.to_thread(nice))
    """)
    assert done.stdout.split() == ["True", "0", "0"], done.stderr


def test_where_real_time_is_refused_it_is_the_best_nice_value(group: Path) -> None:
    done = run(
        """
        scheduling = LoopScheduling("auto")
        with scheduling.taken():
            print(scheduling.given, policy() == os.SCHED_OTHER, nice())
        """,
        group=group,
    )
    assert done.stdout.splitlines()[-1:] == ["nice True -20"], done.stderr


def test_without_any_right_the_loop_runs_as_every_process() -> None:
    done = run(
        """
        scheduling = LoopScheduling("auto")
        with scheduling.taken():
            print(scheduling.given, policy() == os.SCHED_OTHER, nice())
        """,
        user=NOBODY,
    )
    assert done.stdout.splitlines()[-1:] == ["none True 0"], done.stderr


@realtime
def test_a_loop_that_runs_away_loses_real_time_and_gets_it_again_once_it_turns() -> None:
    done = run("""
        scheduling = LoopScheduling("auto", runaway_s=0.05, pause_s=0.01)
        with scheduling.taken():
            for _ in range(2):
                while policy() == os.SCHED_RR:
                    pass
                print("lost", nice())
                while scheduling.given != "nice":
                    await asyncio.sleep(0)
                while scheduling.given != "realtime":
                    await asyncio.sleep(0.001)
                print("again", policy() == os.SCHED_RR)
    """)
    assert [line for line in done.stdout.splitlines() if not line.startswith("20")] == [
        "lost -20",
        "again True",
    ] * 2, done.stderr
    assert done.stdout.count("scheduling.realtime_lost") == 2


@realtime
def test_what_cannot_be_interrupted_is_ended() -> None:
    done = run("""
        with LoopScheduling("auto", runaway_s=0.05, killed_s=0.1).taken():
            collections.deque(itertools.repeat(None), maxlen=0)
    """)
    assert done.returncode == -signal.SIGKILL


def test_another_process_is_given_the_best_nice_value_with_all_its_threads() -> None:
    other = subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert present(other.stdout).readline()
        assert give_best_nice(other.pid)
        threads = [int(folder.name) for folder in Path(f"/proc/{other.pid}/task").iterdir()]
        assert [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads] == [BEST_NICE] * 2
    finally:
        other.communicate()
    assert not give_best_nice(other.pid)


def test_what_is_used_is_kept_in_memory_where_that_is_permitted() -> None:
    program = """
from pathlib import Path
from shared.adapters.host.resident import be_killed_last, lock_memory
print(lock_memory(), be_killed_last() == (Path("/proc/self/oom_score_adj").read_text().strip() == "-998"))
rows = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(rows["VmLck"].split()[0]) > 0)
"""
    first = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert first.stdout.split() == ["True", "True", "True"]
    nobody = ["setpriv", "--reuid", str(NOBODY), "--clear-groups"]
    other = subprocess.run([*nobody, sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.split() == ["False", "True", "False"]
