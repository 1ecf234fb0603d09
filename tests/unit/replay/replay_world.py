"""A small node for the tests of the replay."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shared.contracts.sample import NodeSample
from sublet.replay.traces.frames import Frame, Trace, sample_of

CPUS = 48

NewTrace = Callable[..., Trace]
"""Makes the trace of a node."""


def make_sample(use: Sequence[float | None], seq: int = 1, at_s: float = 0.0, **node: Any) -> NodeSample:
    """A 48-CPU node with one shared pod for each use in cores."""
    pods = [
        {
            "pod": {"uid": f"a{n}", "name": f"web-{n}", "containers": [{"name": "main", "cpu_request_millis": 4000}]},
            "containers": [{"name": "main"} | ({} if cores is None else {"cpu_usage_cores": cores})],
        }
        for n, cores in enumerate(use)
    ]
    fields = {"window_s": 2.0, "node_reading": {"online_cpus": f"0-{CPUS - 1}"} | node, "pods": pods}
    return sample_of("node1", seq, at_s, fields)


def make_trace(wanted: Iterable[float], step_s: float = 2.0, node: str = "node1") -> Trace:
    """A node whose tenants want these amounts of cores together, a frame every `step_s`."""
    frames = [
        Frame(n * step_s, step_s if n else 0.0, make_sample([cores], n, n * step_s)) for n, cores in enumerate(wanted)
    ]
    return Trace(node, CPUS, True, lambda: iter(frames))
