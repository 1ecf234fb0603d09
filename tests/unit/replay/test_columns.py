"""Frames without samples say what frames with samples say, to the last digit, and every contender decides the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.advisor.core.model.containers import CpuColumns
from services.advisor.core.model.machine import Bounds
from services.advisor.registry import known_policies
from sublet.replay.batch import BatchRules
from sublet.replay.contender import Contender, StaticContender, policy_of
from sublet.replay.oracle import OracleContender
from sublet.replay.peers import PEERS, peer_of
from sublet.replay.run import replay
from sublet.replay.traces.columns import TenantColumns, variant_of
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.tenants import Packing, TenantSeries, nodes_of

BOUNDS = [Bounds.of(48, smt=True), Bounds.of(6, smt=False), Bounds.of(48, smt=True, reserve_cores=9.0)]
CONTENDERS: list[Contender] = [
    *map(policy_of, known_policies()), *PEERS.values(), StaticContender(), OracleContender(),
]  # fmt: skip
VALUES = st.floats(0, 6) | st.just(0.0)
NODES = st.lists(
    st.tuples(st.text("abz-A/", min_size=1, max_size=4), st.lists(VALUES, min_size=1, max_size=8), st.integers(0, 3)),
    min_size=1,
    max_size=5,
)
PACKINGS = st.builds(
    Packing,
    cpus=st.sampled_from([4, 16, 48]),
    pod_cores=st.sampled_from([0.5, 4.0]),
    step_s=st.sampled_from([7.0, 30.0, 60.0]),
    between=st.sampled_from(["hold", "linear", "phase"]),
)


def node(tenants: Sequence[tuple[str, Sequence[float], int]], packing: Packing) -> Trace:
    """One node; a tenant comes after so many intervals of 60 s."""
    series = [
        TenantSeries(name, [60.0 * (late + n) for n in range(len(cores))], cores) for name, cores, late in tenants
    ]
    (trace,) = nodes_of(series, 60.0, packing, "day")
    return trace


@given(tenants=NODES, packing=PACKINGS)
def test_a_frame_without_a_sample_is_seen_as_one_with_a_sample(
    tenants: Sequence[tuple[str, Sequence[float], int]], packing: Packing
) -> None:
    with_samples, without = node(tenants, packing).frames(), node(tenants, packing).to_replay()
    for one, other in zip(with_samples, without, strict=True):
        assert (other.at_s, other.covers_s, other.load) == (one.at_s, one.covers_s, one.load)
        for bounds in BOUNDS:
            seen = one.view(bounds)
            assert other.view(bounds) == seen
            assert other.has_rates(seen) == one.has_rates(seen)
        # The replay makes one view a frame, and gives it to all contenders on these CPUs with their own bounds.
        assert replace(one.view(BOUNDS[0]), bounds=BOUNDS[2]) == one.view(BOUNDS[2])


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda contender: contender.name)
@given(tenants=NODES, packing=PACKINGS)
def test_every_contender_decides_the_same_on_both(
    contender: Contender, tenants: Sequence[tuple[str, Sequence[float], int]], packing: Packing
) -> None:
    quick = node(tenants, packing)
    slow = replace(node(tenants, packing), columns=None)
    assert quick.columns is not None
    rows = [replay([trace], [contender], BatchRules(), plot_node="").rows for trace in (quick, slow)]
    assert rows[0] == rows[1]


@settings(max_examples=12)
@given(tenants=NODES, packing=PACKINGS)
def test_a_row_is_the_same_alone_and_among_many(
    tenants: Sequence[tuple[str, Sequence[float], int]], packing: Packing
) -> None:
    """Rows share what they ask of a frame's containers; settings of one must not leak into another."""
    together = [
        *CONTENDERS, policy_of("canonical=c2:usage_factor=2,reserve_cores=0"),
        policy_of("canonical=c3:reserve_cores=9"), policy_of("adaptive=a2:margin_factor=1"),
        peer_of("katalyst", "k2", {"factor": 2.0, "reserve": 0}),
    ]  # fmt: skip
    rows = replay([node(tenants, packing)], together, BatchRules(), plot_node="").rows
    for contender, row in zip(together, rows, strict=True):
        # With samples and one by one: nothing is shared but between the policy and the canonical one that it asks.
        alone = replace(node(tenants, packing), columns=None)
        assert replay([alone], [contender], BatchRules(), plot_node="").rows == (row,)


def test_readings_of_one_uid_keep_their_own_figures() -> None:
    (sample,) = (frame.sample for frame in islice(node([("a", [1.0], 0)], Packing()).frames(), 1))
    twice = sample.model_copy(update={"pods": sample.pods * 2})
    frame = TenantColumns(twice, BOUNDS[0]).frame(0.0, 30.0, 5.0, CpuColumns((1.0, 4.0), (1.0, 4.0), (1.0, 4.0)))
    assert [container.cpu.usage_cores for container in frame.view(BOUNDS[0]).containers] == [1.0, 4.0]


def test_a_variant_differs_in_what_it_is_given_alone() -> None:
    @dataclass(frozen=True, slots=True)
    class Three:
        a: int
        b: str
        c: float = 1.0

    make = variant_of(Three(1, "x", 2.0), "c", "a")
    assert make(5.0, 6) == Three(6, "x", 5.0)
    assert make(7.0, 8) == Three(8, "x", 7.0)
