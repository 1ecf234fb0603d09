"""A plan over thousands of nodes is the same as one made at once, and the rest of central has its turns meanwhile."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.tide.marks import marks_of
from services.central.core.tide.placement import PodToleration, TidePlacement
from services.central.core.tide.plan import PoolPlan, PoolView, TidePace, plan_pool
from services.central.core.tide.pool import pool_of
from services.central.core.tide.roles import Role
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen
from services.central.tide import pool_pass

NOW, PACE = datetime(2026, 1, 1, tzinfo=UTC), TidePace(600, 10, 3600)
ROLES: tuple[Role | None, ...] = (None, "tide_online", "tide_offline", "online_reserve", "offline_reserve")
BOTH = TidePlacement(tolerations=(PodToleration("", "Exists", "", ""),))
POOL = pool_of(
    {"metadata": {"name": "green", "uid": "1"}, "spec": {"nodeConfigs": {"nodeSelector": {"pool": "green"}}}}
)


def view(roles: list[Role | None], pods: list[tuple[int, int, bool]]) -> PoolView:
    """Nodes of these roles; of each pod its node, where there is one of that number, its CPU and its side."""
    assert POOL.pool is not None
    nodes = []
    for number, role in enumerate(roles):
        marks = marks_of(role, "green", {"pool": "green"}, (), POOL.marks.taints)
        nodes.append(TideNodeSeen(f"n{number}", str(number), marks.labels, marks.taints, {"cpu": 4000, "pods": 110}))
    seen = [
        TidePodSeen(f"p{place}", str(place), f"n{on}" if on < len(roles) else None, online, {"cpu": cpu, "pods": 1},
                    BOTH, unschedulable=on >= len(roles))
        for place, (on, cpu, online) in enumerate(pods)
    ]  # fmt: skip
    return PoolView(POOL.marks, POOL.pool, nodes, seen)


VIEWS = st.builds(
    view,
    st.lists(st.sampled_from(ROLES), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4000), st.booleans()), max_size=12),
)


@given(seen=VIEWS)
def test_a_plan_that_is_made_aside_is_the_same(seen: PoolView) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pool_pass, "AT_ONCE", 0)
        assert asyncio.run(pool_pass.planned(seen, NOW, PACE)) == plan_pool(seen, NOW, PACE)


async def test_others_have_their_turn_while_a_large_plan_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    others_have_worked = threading.Event()

    def slow(seen: PoolView, now: datetime, pace: TidePace) -> PoolPlan:
        assert others_have_worked.wait(30), "nobody else had a turn"
        return plan_pool(seen, now, pace)

    monkeypatch.setattr(pool_pass, "AT_ONCE", 1)
    monkeypatch.setattr(pool_pass, "plan_pool", slow)
    task = asyncio.create_task(pool_pass.planned(view(["tide_online"] * 2, []), NOW, PACE))
    await asyncio.sleep(0)
    others_have_worked.set()
    assert [move.role for move in (await task).moves] == ["tide_offline"]
