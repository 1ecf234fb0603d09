"""Read how many runnable tasks waited for a CPU: seconds of waiting per second, which is their average number.

The kernel counts it in three places, none of them always present:
- `/proc/schedstat`, of each CPU (CONFIG_SCHEDSTATS): the node's figure;
- `wait_sum` in a v1 cgroup's `cpu.stat`, if sched_schedstats is on: how long the cgroup as a whole waited for its
  turn, which says nothing about tasks that wait for each other inside it, and is therefore not used;
- `/proc/<tid>/schedstat`, of each task (CONFIG_SCHED_INFO): a container's figure is their sum. A task that ended
  between two readings is lost with its last wait. Of very many tasks, a pass reads only some; the others count with
  their last reading.
Waits for a quota and for a hypervisor are included (docs/facts/linux-cpu.md#run-delay). On v2 the container's
`cpu_pressure` is cheaper and less precise: the share of time in which any task waited.
"""

from services.metrics.core.figures.figure import Figure, Rate, Total
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.gates import PAUSE_S, WORKED, Gate
from services.metrics.core.source import Host, Source
from services.metrics.sources.task_load import some_of, task_ids

_NAME, WAIT_COUNTER = "sched_wait_tasks", "sched_wait_ns"
_CPU_DELAY = 8
"""Column of a CPU's line: nanoseconds spent waiting to run (kernel documentation, scheduler/sched-stats)."""
_TASK_DELAY = 1
_NS = 1e-9


def _read(host: Host, target: Target) -> dict[str, float]:
    if target.kind == "node":
        rows = [line.split() for line in (host.text("proc/schedstat") or "").splitlines() if line.startswith("cpu")]
        return {WAIT_COUNTER: sum(int(row[_CPU_DELAY]) for row in rows)} if rows else {}
    folder = host.group_folder(target, "cpu")
    tids = host.once(task_ids, folder)
    if tids is None:
        return {}
    looked_at, _ = some_of(host, "sched_wait", folder, tids)
    texts = ((tid, host.record(f"proc/{tid}/schedstat")) for tid in looked_at)
    delays = {tid: int(text.split()[_TASK_DELAY]) for tid, text in texts if text}
    # There are tasks, and none of them has a figure: a kernel without CONFIG_SCHED_INFO, which differs from no waiting.
    if tids and not delays:
        return {}
    # A delay is reported when it ends, and may be longer than the window that sees it: one task counts as one, never as
    # several.
    return {WAIT_COUNTER: host.tally(folder, delays, tids, most_per_s=1 / _NS)}


_FIGURES: tuple[Figure, ...] = (Rate(_NAME, of=WAIT_COUNTER, scale=_NS),)
SOURCE = Source(
    {"node": _FIGURES, "pool": (Total(_NAME),), "container": _FIGURES},
    _read,
    cost="dear",
    # No pause of tenants: the advisor gives them by it what they could not get (docs/facts/linux-cpu.md).
    gates={"node": Gate(4.0), "container": Gate(30.0, (WORKED,), batch_pause_s=PAUSE_S)},
)
