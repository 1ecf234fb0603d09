"""CPU time and memory of the agent's pod beside a crowd of pods, and which of its parts they go to."""

import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.kubernetes.agent import AGENT, AgentPod, Memory
from bench.rigs.disturbance import Tries, Watch
from bench.rigs.flame import sampled, without_small
from bench.rigs.report import OUT, Row, observed, progress, stage

PROGRESS_S = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to wait before, how long each run is, how many there are, and how many spikes a series has."""

    rest_s: float = 60.0
    span_s: float = 60.0
    runs: int = 3
    spikes: int = 12


@dataclass(frozen=True, slots=True)
class Targets:
    """What the rows say of their targets."""

    cpu: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True)
class Shares:
    """Of a core, over a span: the whole pod, ended containers too, and each container."""

    pod: float
    containers: Mapping[str, float]
    rss_mib: float
    """Of the whole pod, at the end of the span."""


def measure_cost(agent: AgentPod, what: str, plan: Plan, targets: Targets) -> list[Row]:
    """Rows for the whole pod, its containers, and the parts of the services."""
    wait(plan.rest_s, f"{what}: a while before")
    rows = []
    runs: list[Shares] = []
    for number in range(plan.runs):
        tries = Tries[Shares]()
        while tries.wanted():
            watch = Watch()
            shares = _run(agent, plan.span_s, f"{what}: run {number + 1} of {plan.runs}")
            tries.add(shares, watch.disturbance())
        shares, disturbance = tries.best
        runs.append(shares)
        run_row = Row(f"  run {number + 1}, {what}", percent(shares.pod), 1, "")
        rows += observed([run_row], disturbance, len(tries.made))
    whole = statistics.median(run.pod for run in runs)
    return [
        Row(f"CPU of the agent's pod, {what}", percent(whole), plan.runs, targets.cpu),
        *rows,
        *_parts(agent, what, plan.span_s, runs),
        *_memory_rows(agent.memory(), what, targets.memory),
        Row(
            f"  growth from the first run to the last, {what}", f"{runs[-1].rss_mib - runs[0].rss_mib:+.1f} MiB", 1, ""
        ),
    ]


def _parts(agent: AgentPod, what: str, span_s: float, runs: list[Shares]) -> Iterator[Row]:
    """Containers, and below the agent's what its time goes to; in a span of its own, for sampling takes time too."""
    stage(f"{what}: where the time goes")
    file = OUT / f"stacks-{what.replace(' ', '-')}.txt"
    parts = without_small(sampled(agent.main_pid(), span_s, file))
    for name in runs[-1].containers:
        share = statistics.median(run.containers.get(name, 0.0) for run in runs)
        yield Row(f"  CPU of container {name}, {what}", percent(share), len(runs), "")
        if name == AGENT:
            for part, of_it in parts.items():
                yield Row(f"    {part}, {what}", f"{percent(share * of_it)}, {of_it * 100:.0f} % of it", 1, "")


def _memory_rows(memory: Mapping[str, Memory], what: str, target: str) -> Iterator[Row]:
    yield Row(f"memory of the agent's pod, {what}, RSS (PSS)", str(_whole(memory)), 1, target)
    for name, one in memory.items():
        yield Row(f"  memory of container {name}, {what}, RSS (PSS)", str(one), 1, "")


def _whole(memory: Mapping[str, Memory]) -> Memory:
    return sum(memory.values(), start=Memory(0.0, 0.0))


def _run(agent: AgentPod, span_s: float, what: str) -> Shares:
    began_s, before, whole_before_s = time.monotonic(), agent.container_cpu_s(), agent.cpu_s()
    wait(span_s, what)
    after, whole_after_s, took_s = agent.container_cpu_s(), agent.cpu_s(), time.monotonic() - began_s
    containers = {name: (used_s - before.get(name, 0.0)) / took_s for name, used_s in after.items()}
    return Shares((whole_after_s - whole_before_s) / took_s, containers, _whole(agent.memory()).rss_mib)


def percent(share: float) -> str:
    """A share of a core as text."""
    return f"{share * 100:.2f} % of a core"


def wait(span_s: float, what: str) -> None:
    """Let time pass, and say how much is left."""
    stage(f"{what}, {span_s:.0f} s")
    end_s = time.monotonic() + span_s
    while (left_s := end_s - time.monotonic()) > 0:
        progress(f"{what}, {left_s:.0f} s")
        time.sleep(min(PROGRESS_S, left_s))
