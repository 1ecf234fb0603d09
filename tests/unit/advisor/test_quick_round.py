"""What a round keeps from the one before, and the short ways of the usual node, give what the whole way gives."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.ramp import Ramp
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.sizing.node_shape import shape_of
from services.advisor.core.sizing.region_views import region_views

NODES = ((0, 24), (1, 24))
FIGURE = st.none() | st.floats(0, 8)
CONTAINERS = st.lists(
    st.builds(
        ContainerView, pod=st.sampled_from(["default/a", "default/b"]), uid=st.uuids().map(str), name=st.just("main"),
        qos=st.sampled_from(["shared_cores", "dedicated_cores", "system_cores", "reclaimed_cores"]),
        request_cores=st.floats(0, 8), request_bytes=st.integers(0, 9), cpu=st.builds(Figures, FIGURE, FIGURE, FIGURE),
        memory=st.just(Resident()),
    ),
    max_size=6,
)  # fmt: skip
VIEWS = st.builds(
    lambda containers, numas, reserve: View(
        Bounds.of(48, smt=True, reserve_cores=reserve), tuple(containers), numas=numas
    ),
    CONTAINERS,
    st.sampled_from([(), NODES]),
    st.floats(0, 12),
)


def dedicated(cpus: int, numa: int) -> ContainerView:
    return ContainerView(
        "default/db", "db", "main", "dedicated_cores", float(cpus), 0, Figures(), Resident(), dedicated=True,
        cpus_per_numa=((numa, cpus),),
    )  # fmt: skip


@given(view=VIEWS, size=st.none() | st.integers(0, 48))
def test_a_share_pool_alone_is_seen_as_among_many(view: View, size: int | None) -> None:
    ramps = {} if size is None else {"share": Ramp(size)}
    # A pod to be isolated that is not there: the way of a node with several regions.
    assert region_views(view, (), shape_of(view), ramps) == region_views(view, {"nobody"}, shape_of(view), ramps)


def test_a_shape_is_the_same_as_long_as_machine_and_dedicated_pods_are() -> None:
    view = View(Bounds.of(48, smt=True), (dedicated(8, 0),), numas=NODES)
    busy = replace(view, containers=(replace(dedicated(8, 0), cpu=Figures(3.0)),), tenants_usage_cores=9.0)
    assert shape_of(busy) is shape_of(view)
    assert shape_of(replace(view, containers=(dedicated(10, 0),))).node.available == {0: 14, 1: 24}
    assert shape_of(view).node.available == {0: 16, 1: 24}
