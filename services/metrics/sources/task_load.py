"""Read the load of a container and everything below it: its tasks that run, want to run, or wait uninterruptibly.

The kernel keeps a load average for the whole machine only; this one is its formula for a cgroup: an exponentially
damped average over 60 and 300 s of the number of tasks in state R or D. A pool's load is that of its containers.
Of a container with very many tasks only some are read at a time, others each time, and each counts for several.
"""

from services.metrics.core.figures.figure import Damped, Gauge, Total
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.gates import PAUSE_S, WORKED, Gate
from services.metrics.core.source import Host, Source
from shared.core.cgroups.knobs import Version
from shared.core.text.kernel_text import task_state

TASK_FILE: dict[Version, str] = {1: "tasks", 2: "cgroup.threads"}


def task_ids(host: Host, folder: str) -> list[str] | None:
    """Return the tasks in a cgroup's folder and below; None if its list of tasks is missing or unreadable."""
    listed = host.file(f"{folder}/{TASK_FILE[host.version]}") if host.sees_tasks else None
    if listed is None:
        return None
    found = listed.split()
    for child in host.groups_below(folder):
        below: list[str] | None = host.once(task_ids, child)
        # A group below that has just gone takes its tasks along.
        found += below or []
    return found


def some_of(host: Host, source: str, folder: str, tids: list[str]) -> tuple[list[str], int]:
    """The tasks of a folder that the source reads now, and for how many each of them counts.

    Not by the number of the pass: one that reads every so many passes would meet the same part for ever.
    """
    step = -(-len(tids) // host.most_tasks)
    return (tids[host.turn(source, folder) % step :: step], step) if step > 1 else (tids, 1)


def _read(host: Host, target: Target) -> dict[str, int]:
    folder = host.group_folder(target, "cpu")
    tids = host.once(task_ids, folder)
    if tids is None:
        return {}
    looked_at, step = some_of(host, "task_load", folder, tids)
    # Below its own task folder a thread's state needs no walk over its whole process; a vanished task has none.
    stats = (host.record(f"proc/{tid}/task/{tid}/stat") for tid in looked_at)
    states = [task_state(stat) for stat in stats if stat]
    runnable, waiting = states.count("R") * step, states.count("D") * step
    return {"runnable_tasks": runnable, "loaded_tasks": runnable + waiting}


_LOADS = ("runnable_tasks", "load1", "load5")
SOURCE = Source(
    {
        "container": (
            Gauge("runnable_tasks"),
            Damped("load1", of="loaded_tasks", period_s=60.0),
            Damped("load5", of="loaded_tasks", period_s=300.0),
        ),
        "pool": tuple(Total(name) for name in _LOADS),
    },
    _read,
    cost="dear",
    gates={"container": Gate(30.0, (WORKED,), PAUSE_S)},
)
