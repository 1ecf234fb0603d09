"""A fleet's plan is bounded, and says what would do."""

from typing import Any

import pytest

from shared.errors import Refused
from sublet.fleet.plan import MOST_NODES, FleetPlan, checked


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"nodes": 0}, f"--nodes 0: want 1 to {MOST_NODES}"),
        ({"nodes": MOST_NODES + 1}, f"want 1 to {MOST_NODES}"),
        ({"nodes": 10, "period_s": 0.5}, "--period 0.5: want 1 to 60 s"),
        ({"nodes": 10, "period_s": float("nan")}, "--period nan: want 1 to 60 s"),
        ({"nodes": 10, "shards": 17}, "--shards 17: want 1 to 16"),
        ({"nodes": 10, "leaves": 0}, "--leaves 0: want 1 to 64"),
        ({"nodes": 10, "seconds": 4}, "--seconds 4: want 5 to 3600"),
        ({"nodes": 50_000, "period_s": 1.0}, "want --period 2.5 or longer, or fewer nodes"),
    ],
)
def test_what_is_out_of_bounds_is_named_with_what_would_do(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused) as refused:
        checked(FleetPlan(**wrong))
    assert words in str(refused.value)


def test_no_leaf_is_without_a_node_and_no_node_without_a_connection() -> None:
    small = checked(FleetPlan(3, leaves=8))
    assert (small.leaves, small.connections, small.silent) == (3, 3, 1)
    large = checked(FleetPlan(10_000))
    assert (large.connections, large.silent, large.late_s) == (20, 100, 30.0)
    assert len(set(large.names())) == 10_000
