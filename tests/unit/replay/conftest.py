import io
from collections.abc import Callable, Sequence

import pytest
from replay_world import CPUS, make_sample, make_trace

from shared.contracts.sample import NodeSample
from shared.core.cpus.topology import Cpu, Topology
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.recording import Writer


@pytest.fixture
def sample() -> Callable[..., NodeSample]:
    return make_sample


@pytest.fixture
def trace() -> Callable[..., Trace]:
    return make_trace


@pytest.fixture
def topology() -> Topology:
    return Topology.of(Cpu(cpu, 0, 0, cpu % 24, 0) for cpu in range(CPUS))


@pytest.fixture
def recorded(topology: Topology) -> Callable[..., bytes]:
    """A recording of these samples, one every `step_s`."""

    def make(samples: Sequence[NodeSample], *, close: bool = True, step_s: float = 2.0) -> bytes:
        out = io.BytesIO()
        writer = Writer(out, "node1", topology)
        for number, one in enumerate(samples):
            writer.write(number * step_s, one)
        if close:
            writer.close()
        return out.getvalue()

    return make
