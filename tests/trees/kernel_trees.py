"""Small host trees in the kernel's own formats, cgroup v1 and v2, for tests and the bench.

The fragments keep the kernel's spelling, order and padding (v1 and /proc from 6.18, v2 from 6.1), shortened to the
neighbours of what is read, so that a reader that matches too much or too little fails.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

MEMINFO = """\
MemTotal:       {total_kib:8d} kB
MemFree:        {free_kib:8d} kB
MemAvailable:   {available_kib:8d} kB
Buffers:           10240 kB
Cached:           121248 kB
SwapCached:            0 kB
Active(file):      85876 kB
Inactive(file):    26400 kB
HugePages_Total:       0
Hugepagesize:       2048 kB
"""

NODE_MEMINFO = """\
Node {numa} MemTotal:       {total_kib:8d} kB
Node {numa} MemFree:        {free_kib:8d} kB
Node {numa} MemUsed:          333828 kB
Node {numa} Inactive:          36724 kB
Node {numa} Inactive(anon):    10324 kB
Node {numa} Inactive(file):    {inactive_file_kib:5d} kB
Node {numa} Active(file):       3072 kB
Node {numa} FilePages:         {file_kib:5d} kB
Node {numa} SReclaimable:       2048 kB
Node {numa} HugePages_Total:     0
"""

STAT = """\
cpu  {user} 10 {system} 900000 700 5 15 40 30 2
{per_cpu}intr 5117420 0 9 0 0 0 0
ctxt 9234813
btime 1763723062
processes 12345
procs_running {running}
procs_blocked 1
softirq 1890452 0 340811 9 44
"""

VMSTAT = """\
nr_free_pages 1020978
pgscan_kswapd 900
pgscan_direct_throttle 9
pgsteal_kswapd {steal}
pgsteal_direct 77
pgsteal_khugepaged 0
workingset_nodes 54817
workingset_refault_anon 3
workingset_refault_file 40
workingset_activate_file 597064
"""

ZONES = """\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 314209
      workingset_refault_file 2589164
  pages free     3840
        boost    0
        min      36
        low      45
        high     54
        promo    63
        spanned  4095
        protection: (0, 3019, 6987, 6987, 6987)
      nr_free_pages 3840
  pagesets
    cpu: 0
              count: 12
              high:  14
              batch: 1
              high_min: 13
  vm stats threshold: 2
  node_unreclaimable:  0
  start_pfn:           1
Node 0, zone   Normal
  pages free     300
        boost    0
        min      100
        low      200
        high     300
        spanned  4095
Node 1, zone   Normal
  pages free     300
        boost    0
        min      1
        low      2
        high     3
        spanned  4095
"""

SCHEDSTAT = """\
version 15
timestamp 4295230417
{per_cpu}"""

SCHEDSTAT_CPU = """\
cpu{cpu} 0 0 0 0 0 0 900000 {delay} 44
domain0 03 0 0 0 0
"""

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 292667708  862432    0    0    0     0          0         0 292667708  862432    0    0    0     0       0          0
veth12:  777 1 0 0 0 0 0 0 888 1 0 0 0 0 0 0
  eth0: {received}  150484    0    0    0     0          0         0  {sent}    86964    0    0    0     0       0          0
  ens5:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0
"""  # noqa: E501 - as the kernel pads it

DISKS = """\
   7       0 loop0 9 9 99 9 9 9 99 9 0 0 0 0 0 0 0 0 0
 254       0 vda 667936 103611 {read} 540908 2002628 1681183 {written} 464726 0 354328 1154060 1511499 45 27524424
 254       1 vda1 5 5 55 5 5 5 55 5 0 5 5
 253       0 dm-0 7 7 77 7 7 7 77 7 0 7 7
 259       0 nvme0n1 1 1 2 1 1 1 3 1 0 1 1
"""

V1_NUMA_STAT = """\
total=4898 N0=4898 N1=0
file=71 N0=71 N1=0
anon=374 N0=374 N1=0
unevictable=4453 N0=4453 N1=0
hierarchical_total=30 N0=10 N1=20
hierarchical_file=12 N0=4 N1=8
hierarchical_anon={anon} N0={anon0} N1={anon1}
hierarchical_unevictable=0 N0=0 N1=0
"""

V2_NUMA_STAT = """\
anon N0={anon0} N1={anon1}
file N0=16384 N1=32768
kernel_stack N0=1 N1=2
anon_thp N0=3 N1=4
file_mapped N0=5 N1=6
"""

V1_IO = """\
254:0 Read 4096
254:0 Write 8192
254:0 Sync 1
254:0 Async 2
254:0 Total 12288
Total 12288
"""

V2_IO = "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=5 dios=0\n253:0 \n"

PRESSURE = """\
some avg10={some10} avg60={some60} avg300=0.20 total=4988794
full avg10={full10} avg60=0.00 avg300=0.00 total=0
"""

V1_MEMORY_STAT = """\
cache {cache}
rss 14061568
rss_huge 0
shmem 9084928
workingset_refault_file 1
inactive_file 111
active_file 151552
hierarchical_memory_limit 9223372036854771712
total_cache {cache}
total_rss {rss}
total_rss_huge 0
total_shmem 4096
total_workingset_refault_anon 2
total_workingset_refault_file {refaults}
total_inactive_anon 10616832
total_inactive_file {inactive_file}
total_active_file 95555
"""

V2_MEMORY_STAT = """\
anon {rss}
file {cache}
kernel 2883584
shmem 4096
file_mapped 7659520
inactive_anon 10616832
active_anon 1609728
inactive_file {inactive_file}
active_file 95555
unevictable 0
workingset_refault_anon 2
workingset_refault_file {refaults}
workingset_activate_file 7
"""

V1_CPU_STAT = """\
nr_periods {periods}
nr_throttled {throttled}
throttled_time 100000
nr_bursts 0
burst_time 0
"""

V1_CPUACCT_STAT = """\
user 42
system {system_ticks}
"""

V2_CPU_STAT = """\
usage_usec {usage_us}
user_usec 12
system_usec {system_us}
nice_usec 0
nr_periods {periods}
nr_throttled {throttled}
throttled_usec 100
nr_bursts 0
burst_usec 0
"""

TASK_STAT = "{tid} (a) R (b) {state} 1 {tid} {tid} 0 -1 4194304 98 0 0 0 3 1 0 0 20 0 1 0 4021 0 0\n"
"""A command may hold blanks, brackets and what looks like a state."""

GIB = 1 << 30
V1_NO_LIMIT = 9223372036854771712


class KernelTree:
    """A host root below a folder; every call writes files as a kernel would show them at that moment."""

    def __init__(self, root: Path, version: int) -> None:
        self.root, self.version = root, version
        self._next_tid = 100
        cgroups = root / "sys/fs/cgroup"
        if version == 2:
            put(cgroups / "cgroup.controllers", "cpuset cpu io memory pids\n")
        else:
            for controller in ("cpuset", "cpu", "cpuacct", "memory", "blkio"):
                (cgroups / controller).mkdir(parents=True)

    def machine(self, *, cpus: int = 4, numas: int = 2) -> None:
        """CPUs and NUMA nodes: two threads a core, a socket a NUMA node, core ids that repeat from socket to socket."""
        cpu_folder, node_folder = self.root / "sys/devices/system/cpu", self.root / "sys/devices/system/node"
        put(cpu_folder / "online", f"0-{cpus - 1}\n")
        put(node_folder / "online", f"0-{numas - 1}\n")
        each, half = cpus // numas, cpus // 2
        for cpu in range(cpus):
            numa, first = (cpu % half) * numas // half, cpu % half
            topology = cpu_folder / f"cpu{cpu}/topology"
            put(topology / "physical_package_id", f"{numa}\n")
            put(topology / "die_id", "0\n")
            put(topology / "core_id", f"{first % (each // 2)}\n")
            put(topology / "core_cpus_list", f"{first},{first + half}\n")
            put(cpu_folder / f"cpu{cpu}/cache/index3/level", "3\n")
            put(cpu_folder / f"cpu{cpu}/cache/index3/shared_cpu_list", f"{first},{first + half}\n")
        for numa in range(numas):
            own = [c for c in range(cpus) if (c % half) * numas // half == numa]
            put(node_folder / f"node{numa}/cpulist", ",".join(map(str, own)) + "\n")
            self.numa_memory(numa, free=GIB)

    def numa_memory(self, numa: int, *, free: int, total: int = 2 * GIB, inactive_file: int = 64 << 20) -> None:
        """Memory of one NUMA node."""
        text = NODE_MEMINFO.format(
            numa=numa, total_kib=total >> 10, free_kib=free >> 10, inactive_file_kib=inactive_file >> 10,
            file_kib=2 * inactive_file >> 10,
        )  # fmt: skip
        put(self.root / f"sys/devices/system/node/node{numa}/meminfo", text)

    def node(
        self,
        *,
        busy_ticks: int = 1000,
        free: int = 2 * GIB,
        total: int = 4 * GIB,
        cpus: int = 4,
        steal: int = 5,
        waited_ns: int = 100,
        received: int = 1000,
        sectors: int = 10,
        cpu_ticks: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        """Everything below /proc but the tasks. `busy_ticks` is user time; 10 + 30 + 5 + 15 ticks are busy besides.

        `cpu_ticks`: user and idle time of single CPUs.
        """
        proc = self.root / "proc"
        times = dict.fromkeys(range(cpus), (1, 4)) | dict(cpu_ticks or {})
        rows = "".join(f"cpu{cpu} {user} 2 3 {idle} 5 6 7 8 9 0\n" for cpu, (user, idle) in times.items())
        put(proc / "stat", STAT.format(user=busy_ticks, system=30, per_cpu=rows, running=3))
        put(proc / "loadavg", "1.25 0.75 0.50 3/94 7450\n")
        put(proc / "vmstat", VMSTAT.format(steal=steal))
        put(proc / "sys/vm/watermark_scale_factor", "10\n")
        put(proc / "meminfo", MEMINFO.format(total_kib=total >> 10, free_kib=free >> 10, available_kib=free >> 10))
        put(proc / "zoneinfo", ZONES)
        lines = "".join(SCHEDSTAT_CPU.format(cpu=cpu, delay=waited_ns) for cpu in range(cpus))
        put(proc / "schedstat", SCHEDSTAT.format(per_cpu=lines))
        put(proc / "1/net/dev", NET_DEV.format(received=received, sent=2 * received))
        put(proc / "diskstats", DISKS.format(read=sectors, written=3 * sectors))
        for resource in ("cpu", "memory", "io"):
            put(proc / f"pressure/{resource}", PRESSURE.format(some10="1.50", some60="2.25", full10="0.50"))

    def group(
        self,
        name: str,
        *,
        usage_ns: int = 0,
        system_ns: int = 7000,
        periods: int = 0,
        throttled: int = 0,
        memory: int = 100 << 20,
        rss: int = 60 << 20,
        cache: int = 30 << 20,
        inactive_file: int = 20 << 20,
        refaults: int = 0,
        anon_pages: tuple[int, int] = (6, 12),
        memory_limit: int | None = None,
        cpu_quota_us: int | None = None,
        tids: Sequence[int] = (),
    ) -> None:
        """One cgroup with its counters; parents get a list of tasks as well."""
        for parent in list(Path(name).parents)[:-1]:
            if not (self.folder(str(parent), "cpu") / self.task_file).exists():
                self.group(str(parent))
        listed = "".join(f"{tid}\n" for tid in tids)
        memory_values = {"rss": rss, "cache": cache, "inactive_file": inactive_file, "refaults": refaults}
        if self.version == 1:
            put(self.folder(name, "cpuacct") / "cpuacct.usage", f"{usage_ns}\n")
            stat = V1_CPUACCT_STAT.format(system_ticks=system_ns // 10**7)
            put(self.folder(name, "cpuacct") / "cpuacct.stat", stat)
            put(self.folder(name, "cpu") / "cpu.stat", V1_CPU_STAT.format(periods=periods, throttled=throttled))
            put(self.folder(name, "memory") / "memory.usage_in_bytes", f"{memory}\n")
            put(self.folder(name, "memory") / "memory.stat", V1_MEMORY_STAT.format(**memory_values))
            put(self.folder(name, "memory") / "memory.numa_stat", _numa_stat(V1_NUMA_STAT, anon_pages, unit=1))
            put(self.folder(name, "memory") / "memory.limit_in_bytes", f"{memory_limit or V1_NO_LIMIT}\n")
            put(self.folder(name, "cpu") / "cpu.cfs_quota_us", f"{cpu_quota_us or -1}\n")
            put(self.folder(name, "cpu") / "cpu.cfs_period_us", "100000\n")
            put(self.folder(name, "blkio") / "blkio.throttle.io_service_bytes_recursive", V1_IO)
        else:
            stat = V2_CPU_STAT.format(
                usage_us=usage_ns // 1000, system_us=system_ns // 1000, periods=periods, throttled=throttled
            )
            put(self.folder(name, "cpu") / "cpu.stat", stat)
            put(self.folder(name, "memory") / "memory.current", f"{memory}\n")
            put(self.folder(name, "memory") / "memory.stat", V2_MEMORY_STAT.format(**memory_values))
            put(self.folder(name, "memory") / "memory.numa_stat", _numa_stat(V2_NUMA_STAT, anon_pages, unit=4096))
            put(self.folder(name, "memory") / "memory.max", f"{memory_limit or 'max'}\n")
            put(self.folder(name, "cpu") / "cpu.max", f"{cpu_quota_us or 'max'} 100000\n")
            put(self.folder(name, "io") / "io.stat", V2_IO)
            for resource in ("cpu", "memory", "io"):
                text = PRESSURE.format(some10="3.00", some60="4.00", full10="1.00")
                put(self.folder(name, "") / f"{resource}.pressure", text)
        put(self.folder(name, "cpu") / self.task_file, listed)

    def card(
        self, name: str, *, state: str | None = "up", carrier: str | None = "1", speed: str | None = "10000",
        hardware: bool = True,
    ) -> None:  # fmt: skip
        """A network interface; an attribute that is None is not there."""
        folder = self.root / f"sys/class/net/{name}"
        if hardware:
            put(folder / "device/vendor", "0x1af4\n")
        for attribute, said in (("operstate", state), ("carrier", carrier), ("speed", speed)):
            (folder / attribute).unlink(missing_ok=True)
            if said is not None:
                put(folder / attribute, f"{said}\n")

    def tasks(self, states: str) -> list[int]:
        """New tasks, one for each letter; gives their ids."""
        tids = [self._next_tid + offset for offset in range(len(states))]
        self._next_tid += len(states)
        for tid, state in zip(tids, states, strict=True):
            put(self.root / f"proc/{tid}/task/{tid}/stat", TASK_STAT.format(tid=tid, state=state))
            self.task_waited(tid, 1000 + tid)
        return tids

    def task_waited(self, tid: int, waited_ns: int) -> None:
        """How long a task has waited to run, in its life."""
        put(self.root / f"proc/{tid}/schedstat", f"45508 {waited_ns} 9\n")

    @property
    def task_file(self) -> str:
        """Where a cgroup lists its tasks."""
        return "tasks" if self.version == 1 else "cgroup.threads"

    def folder(self, group: str, controller: str) -> Path:
        """A cgroup's folder."""
        cgroups = self.root / "sys/fs/cgroup"
        return (cgroups / controller if self.version == 1 else cgroups) / group


def _numa_stat(text: str, anon_pages: tuple[int, int], *, unit: int) -> str:
    first, second = (pages * unit for pages in anon_pages)
    return text.format(anon=first + second, anon0=first, anon1=second)


def put(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
