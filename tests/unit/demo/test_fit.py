"""Loads that fit a machine, and what counts as a disturbance."""

from dataclasses import replace

import pytest
from demo_world import BUSY, IDLE
from hypothesis import given
from hypothesis import strategies as st

from sublet.demo.machine.fit import (
    LEAST_SPIKE_PER_S,
    LEAST_WORK_MS,
    MOST_SPIKE_PER_S,
    SPIKE_PART,
    CaseNoise,
    DemoLoads,
    MachineReading,
    disturbances,
    fit,
    noise,
    words,
)


@pytest.mark.parametrize(
    ("cpus", "got_cores", "loads"),
    [
        pytest.param(2, 2.0, DemoLoads(40, 260, 5.0, 4, 4), id="a small machine, idle"),
        pytest.param(2, 0.5, DemoLoads(10, 65, 5.0, 4, 4), id="busy: fewer requests"),
        pytest.param(2, 0.01, DemoLoads(3, 20, 5.0, 4, 4), id="nothing to be had: the least"),
        pytest.param(64, 64.0, DemoLoads(40, 260, 160.0, 128, 128), id="large: longer requests, more workers"),
        pytest.param(1, 1.0, DemoLoads(20, 130, 5.0, 4, 4), id="one CPU"),
    ],
)
def test_loads_by_machine(cpus: int, got_cores: float, loads: DemoLoads) -> None:
    assert fit(replace(IDLE, cpus=cpus, got_cores=got_cores)) == loads


@given(st.integers(1, 512), st.floats(0.0, 1.0))
def test_the_spike_takes_its_part_of_what_can_be_had(cpus: int, part: float) -> None:
    reading = replace(IDLE, cpus=cpus, got_cores=cpus * part)
    loads = fit(reading)
    wanted = max(SPIKE_PART * reading.got_cores, LEAST_SPIKE_PER_S * LEAST_WORK_MS / 1000)
    assert loads.spike_per_s * loads.work_ms / 1000 == pytest.approx(wanted, rel=0.06)
    assert LEAST_SPIKE_PER_S <= loads.spike_per_s <= MOST_SPIKE_PER_S
    assert 1 <= loads.steady_per_s < loads.spike_per_s


@pytest.mark.parametrize(
    ("reading", "found"),
    [
        pytest.param(IDLE, [], id="idle"),
        pytest.param(replace(IDLE, others_cores=0.29), [], id="a little"),
        pytest.param(replace(IDLE, others_cores=0.3), ["x: other work used 0.3 of 2 CPUs"], id="others"),
        pytest.param(replace(IDLE, cpus=64, got_cores=63.0, others_cores=5.0), [], id="a part of a large machine"),
        pytest.param(replace(IDLE, steal_percent=5), ["x: the hypervisor took 5 % of the CPU time"], id="steal"),
        pytest.param(replace(IDLE, got_cores=1.5), ["x: busy threads of the demo got 1.5"], id="not all CPUs"),
        pytest.param(replace(IDLE, pressure_percent=None), [], id="a kernel without PSI"),
        pytest.param(replace(IDLE, pressure_percent=20), ["x: tasks waited for a CPU 20 % of the time"], id="PSI"),
    ],
)
def test_what_disturbs(reading: MachineReading, found: list[str]) -> None:
    assert disturbances("x", reading) == found


def test_noise_of_a_case_and_words_of_a_reading() -> None:
    assert noise("x", 2, CaseNoise(0.1, 1.0)) == []
    assert noise("x", 2, CaseNoise(1.0, 9.0)) == [
        "x: other work used 1.0 of 2 CPUs, the hypervisor took 9 % of the CPU time"
    ]
    assert words(BUSY) == (
        "0.6 of 2 CPUs to be had, 900 MB/s of SHA-256 each; other work uses 2.0, load 9.0, steal 0 %, "
        "tasks wait 90 % of the time"
    )
