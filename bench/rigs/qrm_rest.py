"""What qrm costs on kubelet's groups while nothing changes but the offer: CPU time and files opened, by second.

    python -m bench.rigs.qrm_rest

Virtual time, plain files in memory: opening those of a kernel takes about as long, and what they hold is as short.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

sys.path += [str(Path(__file__).parents[2] / folder) for folder in ("tests", "tests/unit/qrm")]

from plain_cgroups import PlainCgroups
from qrm_world import Node

from bench.rigs.report import Row, machine
from services.qrm.adapters.lease import file as leases
from services.qrm.core.writes.plan import WantedSets
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.telemetry import setup_logging
from sublet.sim.run import IN_MEMORY
from sublet.sim.virtual_time import VirtualTimeLoop

REPOSITORY = Path(__file__).parents[2]
SIZES = (50, 110, 250)
SETTLE_S, SPAN_S = 15, 60
COUNT_FILES = "count-files"
Found = TypeVar("Found")
_LISTS = ("os.scandir", "os.listdir")


class Opened:
    """Counts the files and folders that this process opens, until it ends: nobody can stop listening."""

    def __init__(self) -> None:
        self.files = self.folders = 0
        sys.addaudithook(self._heard)

    def _heard(self, event: str, _arguments: object) -> None:
        self.files += event == "open"
        self.folders += event in _LISTS


class WatchedLease:
    """A lease that is written as on a node, and taken for watched."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / leases.FILE

    def left_s(self) -> float:
        """None of an earlier life."""
        return 0.0

    def left_behind(self) -> bool:
        """None of an earlier life."""
        return False

    def renew(self, left_s: float, floor: Mapping[str, WantedSets]) -> None:
        """Write it."""
        leases.write_lease(self._file, leases.Lease(leases.boottime_s() + left_s, "boot", floor, "kubepods"))

    def ensure_watchdog(self) -> None:
        """It is there."""

    def watchdog_fired(self) -> bool:
        """Look for its mark, as on a node."""
        try:
            (self._file.parent / leases.FIRED).unlink()
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove it."""
        self._file.unlink(missing_ok=True)

    async def stop(self) -> None:
        """Nothing runs."""


def pods_of(count: int) -> list[Pod]:
    """Half tenants, half batch pods, a container and a sandbox each."""
    return [
        Pod(
            uid=f"{number:032x}",
            name=f"pod-{number}",
            qos="reclaimed_cores" if number % 2 else "shared_cores",
            kube_qos="BestEffort" if number % 2 else "Burstable",
            containers=(Container(name="main", id=f"containerd://{number:064x}", cpu_request_millis=10),),
        )
        for number in range(count)
    ]


@contextmanager
def node(count: int) -> Iterator[Node]:
    """A qrm on kubelet's groups with so many running pods."""
    layout = KubeletLayout("cgroupfs")
    with tempfile.TemporaryDirectory(prefix="sublet-bench-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        plain = PlainCgroups(Path(folder) / "host")
        pods = pods_of(count)
        for home in sorted({layout.top, *layout.homes}):
            plain.add(home)
        for process, pod in enumerate(pods):
            plain.add(layout.pod_group(pod))
            for number, name in enumerate((f"{process:064x}", f"{process:063x}s")):
                plain.add(group := f"{layout.pod_group(pod)}/{name}")
                plain.set(group, "cgroup.procs", str(2 * process + number))
        here = Node(Path(folder), WatchedLease(Path(folder)), plain=plain, layout=layout, substrate="kubernetes")
        here.processes.update((pid, "sleep") for pid in range(2 * count))
        here.pods.known = pods
        yield here


async def live(here: Node, seconds: int) -> None:
    """An advice a second, as with the samples of a node at rest: the same sizes, an offer of memory that moves."""
    for second in range(seconds):
        offer = 150_000_000_000 + second % 7 * 1_000_000
        await here.advisor.publish(here.advice(reclaimed_cpu_millis=40_000 + second % 5, reclaimed_memory_bytes=offer))
        await asyncio.sleep(1)


async def cpu_ms_per_s(count: int) -> float:
    """CPU milliseconds by second, with so many pods."""
    with node(count) as here:
        async with here:
            await live(here, SETTLE_S)
            began_s = time.process_time()
            await live(here, SPAN_S)
            return (time.process_time() - began_s) / SPAN_S * 1000


async def opened_per_s(count: int) -> tuple[float, float]:
    """Files and folders that are opened by second, with so many pods; for a process that does nothing else."""
    with node(count) as here:
        async with here:
            await live(here, SETTLE_S)
            opened = Opened()
            await live(here, SPAN_S)
            return opened.files / SPAN_S, opened.folders / SPAN_S


def opened_elsewhere(count: int) -> tuple[float, float]:
    """The same, counted in a process of its own: what listens in this one would slow down all that is timed later."""
    words = [sys.executable, "-m", "bench.rigs.qrm_rest", COUNT_FILES, str(count)]
    told = subprocess.run(words, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True).stdout
    files, folders = told.split()
    return float(files), float(folders)


def _in_virtual_time(found: Coroutine[Any, Any, Found]) -> Found:
    setup_logging("bench", "sim", as_json=False, level="error")
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(found)


def rows() -> list[Row]:
    """Rows of the table of `make bench`."""
    times = [min(_in_virtual_time(cpu_ms_per_s(count)) for _ in range(3)) for count in SIZES]
    reads = [opened_elsewhere(count) for count in SIZES]
    named = "/".join(str(count) for count in SIZES)
    return [
        Row(f"qrm at rest, {named} pods of kubelet's", " / ".join(f"{one:.2f}" for one in times) + " ms/s", SPAN_S, ""),
        Row(
            f"files (folders) it opens, {named} pods",
            " / ".join(f"{files:.0f} ({folders:.0f})" for files, folders in reads) + " /s",
            SPAN_S,
            "",
        ),
    ]


def main() -> None:
    """Print the table, or the files and folders that are opened by second with so many pods."""
    if sys.argv[1:2] == [COUNT_FILES]:
        print(*_in_virtual_time(opened_per_s(int(sys.argv[2]))))
        return
    print(f"qrm at rest, best of 3 spans of {SPAN_S} s, CPU time; {machine()}\n")
    for row in rows():
        print(f"| {row.what} | {row.figure} |")


if __name__ == "__main__":
    main()
