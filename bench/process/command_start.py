"""What the shell's user waits for before `sublet --help` and `sublet --version` print: CPU time of the whole process.

    python -m bench.process.command_start

CPU time, not time on the clock: what others do to the machine does not count.
"""

import asyncio
import os
import statistics
import subprocess
import sys

from bench.rigs.report import Row, machine, progress

RUNS = 10
TARGET = "150 ms"
WORDS = ("--help", "--version")


def cpu_ms(word: str) -> float:
    """CPU milliseconds, user and system, of one run."""
    child = subprocess.Popen([sys.executable, "-P", "-m", "sublet", word], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"sublet {word}: exit code {child.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000


async def measure(runs: int = RUNS) -> list[Row]:
    """The median of each word; the first run, which may compile modules, does not count."""
    rows = []
    for word in WORDS:
        progress(f"sublet {word}")
        cpu_ms(word)
        figures = [await asyncio.to_thread(cpu_ms, word) for _ in range(runs)]
        rows.append(Row(f"CPU time of sublet {word}, median", f"{statistics.median(figures):.0f} ms", runs, TARGET))
    return rows


if __name__ == "__main__":
    print(machine())
    for row in asyncio.run(measure()):
        print(f"{row.what}: {row.figure} (target {row.target}, N={row.n})")
