"""The changing files of a generated host outside of the cgroups: /proc and the memory of the NUMA nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sublet.sim.machine import SimMachine
from sublet.sim.model import Stall, damp
from sublet.sim.tree import MIN_FREE_KIB, NODE_FOLDER, HostFiles

HZ = 100  # USER_HZ: the unit of CPU time in /proc
PAGE_BYTES = 4096
BOOT_EPOCH_S = 1_767_225_600  # 2026-01-01 UTC, where the virtual clock starts too
LOAD_WINDOWS_S = (60.0, 300.0, 900.0)


@dataclass(slots=True)
class ProcFigures:
    """What the whole machine shows now: counters since the start and present values."""

    uptime_s: float = 0.0
    busy_s: dict[int, float] = field(default_factory=dict)
    """CPU id to seconds spent in user mode."""
    runnable: float = 0
    tasks: int = 0
    loads: tuple[float, float, float] = (0.0, 0.0, 0.0)
    used_bytes: int = 0
    waited_s: float = 0.0
    """Time that runnable threads have spent without a CPU, all together."""
    stall: Stall = field(default_factory=Stall)

    def advance(self, busy: dict[int, float], waiting: float, step_s: float) -> None:
        """Let `step_s` seconds pass with each CPU so busy (0 to 1) and so many runnable threads without a CPU."""
        self.uptime_s += step_s
        for cpu, share in busy.items():
            self.busy_s[cpu] = self.busy_s.get(cpu, 0.0) + share * step_s
        first, second, third = (
            damp(load, self.runnable, step_s, window) for load, window in zip(self.loads, LOAD_WINDOWS_S, strict=True)
        )
        self.loads = (first, second, third)
        self.waited_s += waiting * step_s
        self.stall.advance(1.0 if waiting > 1e-9 else 0.0, step_s)


def psi_text(stall: Stall, *, full: bool) -> str:
    """A PSI file; where `full` is false the second line is all zero, as for the CPU of a whole machine."""
    some = f"avg10={stall.avg10:.2f} avg60={stall.avg60:.2f} avg300={stall.avg300:.2f} total={int(stall.total_us)}"
    return f"some {some}\nfull {some if full else _CALM}\n"


_CALM = "avg10=0.00 avg60=0.00 avg300=0.00 total=0"
_CALM_VM = ("pgscan_kswapd", "pgsteal_kswapd", "pgsteal_direct", "workingset_refault_anon", "workingset_refault_file")
CALM_PSI = f"some {_CALM}\nfull {_CALM}\n"


def write_node(host: HostFiles, machine: SimMachine, figures: ProcFigures) -> None:
    """Write everything that moves; /proc/meminfo last, so that its presence says that the tree is complete."""
    host.put("proc/uptime", f"{figures.uptime_s:.2f} {_idle_s(machine, figures):.2f}\n")
    host.put("proc/stat", _stat(machine, figures))
    host.put("proc/schedstat", _schedstat(machine, figures))
    loads = " ".join(f"{load:.2f}" for load in figures.loads)
    host.put("proc/loadavg", f"{loads} {round(figures.runnable)}/{max(1, figures.tasks)} {figures.tasks}\n")
    host.put("proc/pressure/cpu", psi_text(figures.stall, full=False))
    for name in ("memory", "io"):
        host.put(f"proc/pressure/{name}", CALM_PSI)
    free_bytes = max(0, machine.memory_bytes - figures.used_bytes)
    host.put("proc/vmstat", f"nr_free_pages {free_bytes // PAGE_BYTES}\n" + "".join(f"{row} 0\n" for row in _CALM_VM))
    host.put("proc/zoneinfo", _zones(machine, free_bytes))
    numas = list(machine.topology.numas)
    for numa in numas:
        rows = _memory_rows(machine.memory_bytes // len(numas), figures.used_bytes // len(numas))
        rows = (*rows, ("MemUsed", figures.used_bytes // len(numas) // 1024))
        text = "".join(f"Node {numa} {name + ':':<16}{kib:>8} kB\n" for name, kib in rows)
        host.put(f"{NODE_FOLDER}/node{numa}/meminfo", text)
    rows = _memory_rows(machine.memory_bytes, figures.used_bytes)
    host.put("proc/meminfo", "".join(f"{name + ':':<16}{kib:>8} kB\n" for name, kib in rows))


def _idle_s(machine: SimMachine, figures: ProcFigures) -> float:
    return figures.uptime_s * len(machine.topology.cpus) - sum(figures.busy_s.values())


def _stat(machine: SimMachine, figures: ProcFigures) -> str:
    lines, total_user, total_idle = [], 0, 0
    for cpu in machine.topology.all:
        user = int(figures.busy_s.get(cpu, 0.0) * HZ)
        idle = int(figures.uptime_s * HZ) - user
        total_user += user
        total_idle += idle
        lines.append(f"cpu{cpu} {user} 0 0 {idle} 0 0 0 0 0 0\n")
    head = f"cpu  {total_user} 0 0 {total_idle} 0 0 0 0 0 0\n"
    totals = f"ctxt 0\nbtime {BOOT_EPOCH_S}\nprocesses {figures.tasks}\n"
    tail = f"{totals}procs_running {round(figures.runnable)}\nprocs_blocked 0\n"
    return head + "".join(lines) + tail


def _schedstat(machine: SimMachine, figures: ProcFigures) -> str:
    """Running and waiting time of each CPU in nanoseconds; the wait is spread evenly."""
    waited_ns = int(figures.waited_s * 1e9) // len(machine.topology.cpus)
    rows = (f"cpu{cpu} 0 0 0 0 0 0 {int(figures.busy_s.get(cpu, 0.0) * 1e9)} {waited_ns} 0\n"
            for cpu in machine.topology.all)  # fmt: skip
    return "version 15\ntimestamp 0\n" + "".join(rows)


def _zones(machine: SimMachine, free_bytes: int) -> str:
    """One zone a NUMA node, with the kernel's rule for its marks (`__setup_per_zone_wmarks` in mm/page_alloc.c)."""
    numas = list(machine.topology.numas)
    pages = machine.memory_bytes // PAGE_BYTES // len(numas)
    low_mark = MIN_FREE_KIB * 1024 // PAGE_BYTES // len(numas)
    gap = max(low_mark // 4, pages * machine.watermark_scale_factor // 10_000)
    marks = (("min", low_mark), ("low", low_mark + gap), ("high", low_mark + 2 * gap))
    rows = "".join(f"        {name:<8} {value}\n" for name, value in (*marks, ("managed", pages)))
    free = free_bytes // PAGE_BYTES // len(numas)
    return "".join(f"Node {numa}, zone   Normal\n  pages free     {free}\n{rows}" for numa in numas)


def _memory_rows(total_bytes: int, used_bytes: int) -> Sequence[tuple[str, int]]:
    """No page cache and no swap: what is not used is free and available."""
    total, used = total_bytes // 1024, min(used_bytes, total_bytes) // 1024
    free = total - used
    zero = ("Buffers", "Cached", "FilePages", "Active(file)", "Inactive(file)", "Shmem", "SwapTotal", "SwapFree")
    return (
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", free),
        ("AnonPages", used),
        *((name, 0) for name in zero),
    )


def start_task(host: HostFiles, pid: int, command: str, *, running: bool) -> None:
    """Give a simulated process its folder: one thread, runnable or asleep."""
    state = "R (running)" if running else "S (sleeping)"
    stat = f"{pid} ({command}) {state[0]} 1 {pid} {pid} 0 -1 4194304 " + " ".join(["0"] * 43) + "\n"
    status = f"Name:\t{command}\nState:\t{state}\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t1\nThreads:\t1\n"
    for folder in (f"proc/{pid}", f"proc/{pid}/task/{pid}"):
        host.put(f"{folder}/stat", stat)
        host.put(f"{folder}/status", status)
        host.put(f"{folder}/comm", f"{command}\n")
    host.put(f"proc/{pid}/cmdline", command)
    task_waited(host, pid, 0.0)


def task_waited(host: HostFiles, pid: int, waited_s: float) -> None:
    """Show how long a simulated process has waited for a CPU."""
    host.put(f"proc/{pid}/schedstat", f"0 {int(waited_s * 1e9)} 0\n")


def end_task(host: HostFiles, pid: int) -> None:
    """Take a simulated process away."""
    host.remove(f"proc/{pid}")
