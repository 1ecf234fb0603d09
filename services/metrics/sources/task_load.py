"""Load of a cgroup and everything below it: its tasks that run, want to run, or wait uninterruptibly.

The kernel keeps a load average for the whole machine only; this one is its formula for a cgroup: an exponentially
damped average over 60 and 300 s of the number of tasks in state R or D, counted once a pass.
"""

import os

from services.metrics.core.figures import GROUPS, Damped, Gauge, Target, Value
from services.metrics.host import Host, Source
from shared.adapters.hostfs import task_state
from shared.core.knobs import Version

_TASK_FILE: dict[Version, str] = {1: "tasks", 2: "cgroup.threads"}


def _read(host: Host, target: Target) -> dict[str, Value]:
    counts = host.once(_count, host.group_folder(target, "cpu"))
    if counts is None:
        return {}
    runnable, waiting = counts
    return {"runnable_tasks": runnable, "loaded_tasks": runnable + waiting}


def _count(host: Host, folder: str) -> tuple[int, int] | None:
    """Tasks in state R and in state D in a folder and all below; None where its list of tasks is not there."""
    listed = host.file(f"{folder}/{_TASK_FILE[host.version]}")
    if listed is None:
        return None
    # Below its own task folder a thread's state costs no walk over its whole process; a vanished task has none.
    stats = (host.text(f"proc/{tid}/task/{tid}/stat") for tid in listed.split())
    states = [task_state(stat) for stat in stats if stat]
    runnable, waiting = states.count("R"), states.count("D")
    for child in _children(folder):
        below = host.once(_count, child)
        if below is not None:
            runnable, waiting = runnable + below[0], waiting + below[1]
    return runnable, waiting


def _children(folder: str) -> list[str]:
    """The cgroups directly below."""
    try:
        # A folder's link count is 2 plus its folders: most cgroups are leaves and need no listing.
        if os.stat(folder).st_nlink == 2:  # noqa: PTH116 - half the cost of a Path
            return []
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


SOURCE = Source(
    dict.fromkeys(
        GROUPS,
        (
            Gauge("runnable_tasks"),
            Damped("load1", of="loaded_tasks", period_s=60.0),
            Damped("load5", of="loaded_tasks", period_s=300.0),
        ),
    ),
    _read,
)
