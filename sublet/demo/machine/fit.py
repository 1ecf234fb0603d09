"""Selects loads that fit a machine, and finds what disturbs a measurement. Pure."""

from dataclasses import dataclass

SPIKE_PART = 0.65
"""Of the CPU time that the demo can have here, what the service wants at the spike."""
MOST_SPIKE_PER_S, LEAST_SPIKE_PER_S = 260.0, 20.0
STEADY_PART = 2 / 13
"""Of the spike's requests, what comes a second otherwise."""
LEAST_WORK_MS = 5.0
"""CPU time of a request: less would be lost beside what the connection costs."""
LEAST_WORKERS, MOST_WORKERS = 4, 256

OTHERS_PART, OTHERS_CORES = 0.15, 0.3
"""CPU time of other work disturbs from this part of the machine on, and from so many cores on."""
GOT_PART = 0.8
STEAL_PERCENT = 5.0
PRESSURE_PERCENT = 20.0


@dataclass(frozen=True, slots=True)
class MachineReading:
    """What a look at the machine says while the demo itself is idle, but for a short calibration."""

    cpus: int
    got_cores: float
    """CPU time that one busy thread a CPU got, a second."""
    hash_mb_per_s: float
    """What one of them hashed in a second of CPU time."""
    others_cores: float
    load1: float
    steal_percent: float
    pressure_percent: float | None
    """Time in which some task waited for a CPU; None where the kernel does not say."""


@dataclass(frozen=True, slots=True)
class CaseNoise:
    """What others did while a case was measured."""

    others_cores: float = 0.0
    steal_percent: float = 0.0


@dataclass(frozen=True, slots=True)
class DemoLoads:
    """The loads of all three cases."""

    steady_per_s: float
    spike_per_s: float
    work_ms: float
    workers: int
    batch_processes: int


def fit(reading: MachineReading) -> DemoLoads:
    """Choose loads whose spike takes a fixed part of what the demo can have.

    On a busy machine fewer requests come, on a large one each takes longer.
    """
    spike_cores = SPIKE_PART * reading.got_cores
    spike_per_s = min(max(spike_cores * 1000 / LEAST_WORK_MS, LEAST_SPIKE_PER_S), MOST_SPIKE_PER_S)
    processes = min(max(2 * reading.cpus, LEAST_WORKERS), MOST_WORKERS)
    return DemoLoads(
        steady_per_s=max(1.0, round(STEADY_PART * spike_per_s)),
        spike_per_s=round(spike_per_s),
        work_ms=round(max(LEAST_WORK_MS, spike_cores * 1000 / spike_per_s), 1),
        workers=processes,
        batch_processes=processes,
    )


def words(reading: MachineReading) -> str:
    """The reading as a sentence."""
    pressure = "" if reading.pressure_percent is None else f", tasks wait {reading.pressure_percent:.0f} % of the time"
    return (
        f"{reading.got_cores:.1f} of {reading.cpus} CPUs to be had, {reading.hash_mb_per_s:.0f} MB/s of SHA-256 each; "
        f"other work uses {reading.others_cores:.1f}, load {reading.load1:.1f}, "
        f"steal {reading.steal_percent:.0f} %{pressure}"
    )


def disturbances(when: str, reading: MachineReading) -> list[str]:
    """What of a reading disturbs a measurement, as one sentence; empty on an idle machine."""
    found = _of_others(reading.cpus, reading.others_cores, reading.steal_percent)
    if reading.got_cores < GOT_PART * reading.cpus:
        found.append(f"busy threads of the demo got {reading.got_cores:.1f}")
    if reading.pressure_percent is not None and reading.pressure_percent >= PRESSURE_PERCENT:
        found.append(f"tasks waited for a CPU {reading.pressure_percent:.0f} % of the time")
    return [f"{when}: {', '.join(found)}"] if found else []


def noise(when: str, cpus: int, heard: CaseNoise) -> list[str]:
    """What disturbed a case while it was measured."""
    found = _of_others(cpus, heard.others_cores, heard.steal_percent)
    return [f"{when}: {', '.join(found)}"] if found else []


def _of_others(cpus: int, others_cores: float, steal_percent: float) -> list[str]:
    found = []
    if others_cores >= max(OTHERS_PART * cpus, OTHERS_CORES):
        found.append(f"other work used {others_cores:.1f} of {cpus} CPUs")
    if steal_percent >= STEAL_PERCENT:
        found.append(f"the hypervisor took {steal_percent:.0f} % of the CPU time")
    return found
