"""A replay as a job: in this process, or divided over several, each with some of the rows and some of the nodes.

Nodes and rows are independent, so the parts add up to the same result, to the last digit: they are added in the order
in which one process would have replayed them.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from shared.errors import Unavailable
from sublet.replay.batch import BatchRules
from sublet.replay.contender import Contender
from sublet.replay.judging.total import ReplayOutcome, ReplayTotal
from sublet.replay.rows import rows_of
from sublet.replay.run import replay, replay_node
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.loaders import FileFormat, all_traces, is_recording, most_nodes
from sublet.replay.traces.tenants import Packing

ROWS_APART = 8
"""From so many rows for each process on it pays to part them too: every part sees each frame anew."""
Watch = Callable[[Iterable[Trace]], Iterator[Trace]]
"""Says which trace is being replayed."""


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """What is replayed, as it was asked for."""

    paths: tuple[Path, ...]
    file_format: FileFormat
    packing: Packing
    policies: tuple[str, ...]
    peers: tuple[str, ...]
    rules: BatchRules
    plot_node: str | None = None

    def rows(self) -> list[Contender]:
        """Its rows."""
        return rows_of(self.policies, self.peers, self.rules)

    def traces(self) -> Iterator[Trace]:
        """Its nodes."""
        return all_traces(self.paths, self.file_format, self.packing)


@dataclass(frozen=True, slots=True)
class JobPart:
    """Every n-th row from one on, and every n-th node from one on."""

    job: ReplayJob
    row: int = 0
    row_step: int = 1
    node: int = 0
    node_step: int = 1

    def replayed(self) -> list[tuple[int, ReplayOutcome]]:
        """The outcome of each of its nodes, with the node's place."""
        rows, job = self.job.rows()[self.row :: self.row_step], self.job
        found: list[tuple[int, ReplayOutcome]] = []
        for number, trace in enumerate(job.traces()):
            if number % self.node_step == self.node:
                # The first of all nodes is plotted where none is named.
                plot = number == 0 if job.plot_node == "" else job.plot_node == trace.node
                found.append((number, replay_node(trace, rows, job.rules, plot)))
        return found


def run_job(job: ReplayJob, processes: int, watch: Watch = iter) -> ReplayOutcome:
    """The outcome of a job, with so many processes at most.

    Raises:
        SubletError: what the files, rows or policies refuse.
        Unavailable: a process died.
    """
    if processes <= 1:
        return replay(watch(job.traces()), job.rows(), job.rules, job.plot_node)
    row_step = max(1, min(processes, len(job.rows()) // ROWS_APART))
    node_step = -(-processes // row_step)
    parts = [JobPart(job, row, row_step, node, node_step) for node in range(node_step) for row in range(row_step)]
    # A process of its own from the beginning: one that is split off would share our locks and files.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            found = list(pool.map(JobPart.replayed, parts))
        except BrokenProcessPool as error:
            raise Unavailable(f"--processes {processes}: one of them died ({error}); try fewer, or 1") from error
    return joined(found, row_step)


def joined(parts: Sequence[Sequence[tuple[int, ReplayOutcome]]], row_step: int) -> ReplayOutcome:
    """The parts of all nodes and rows as one outcome. Parts of the same nodes stand beside each other."""
    nodes = [
        (number, [parts[first + row][at][1] for row in range(row_step)])
        for first in range(0, len(parts), row_step)
        for at, (number, _) in enumerate(parts[first])
    ]
    total = ReplayTotal()
    for _, of_rows in sorted(nodes, key=lambda node: node[0]):
        total.add(of_rows)
    return total.outcome()


def usual_processes(job: ReplayJob) -> int:
    """As many as there are CPUs, and no more than there are parts; one for few rows on recordings.

    Each process reads every file: one without a node of its own would read them for nothing.
    """
    rows = len(job.rows())
    if rows < 2 * ROWS_APART and all(is_recording(path, job.file_format) for path in job.paths):
        return 1
    parts = most_nodes(job.paths, job.file_format, job.packing) * max(1, rows // ROWS_APART)
    return max(1, min(len(os.sched_getaffinity(0)), parts))
