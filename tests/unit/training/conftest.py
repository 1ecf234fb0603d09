from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sublet.replay.traces.frames import Trace
from sublet.replay.traces.tenants import Packing, TenantSeries, nodes_of


def _trace(cores: Sequence[float], step_s: float = 10.0, tenants: int = 1) -> Trace:
    """A node of so many equal tenants that together use these cores, one frame for each value."""
    times = [number * step_s for number in range(len(cores))]
    series = [TenantSeries(f"t{number}", times, [use / tenants for use in cores]) for number in range(tenants)]
    return next(nodes_of(series, step_s, Packing(pods_per_node=tenants, step_s=step_s), "made"))


@pytest.fixture
def trace() -> Callable[..., Trace]:
    return _trace


@pytest.fixture
def usage_csv(tmp_path: Path) -> Callable[..., str]:
    """A CSV of one tenant's use, one row every `step_s`."""

    def write(cores: Sequence[float], step_s: float = 10.0, name: str = "usage.csv") -> str:
        rows = [f"{number * step_s:g},t0,{use:.6g}\n" for number, use in enumerate(cores)]
        (tmp_path / name).write_text("time_s,id,usage_cores\n" + "".join(rows))
        return str(tmp_path / name)

    return write
