"""Rules of over-committed nodes: what holds whatever is asked. Worked cases: tests/cases/overcommit.jsonl."""

from hypothesis import given
from hypothesis import strategies as st

from services.central.core.overcommit.admit import NodeOvercommit, admitted
from services.central.core.overcommit.amounts import Amounts
from services.central.core.overcommit.fit import (
    ContainerClaim,
    CpuTaken,
    KubeletBinding,
    OvercommittedNode,
    RatioPair,
    SoldNode,
    cpu_taken,
    kubelet_binding,
    overcommit_fit,
    sold_node,
)
from services.central.core.overcommit.match import PoolClaim, matched, ruled
from services.central.core.overcommit.ratio import effective_ratio
from services.reporter.core.overcommit.bearable import CPU_RULES, ResourceLoad, bearable_ratio
from shared.contracts.kube.overcommit import DOMAIN, Resource, ratio_of

texts = st.none() | st.text(max_size=8) | st.floats(allow_nan=True).map(str) | st.integers(-9, 99).map(str)
amounts = st.builds(lambda a, b: Amounts(min(a, b), max(a, b)), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
ratios = st.floats(1, 10)
claims = st.lists(
    st.builds(PoolClaim, st.sampled_from("abcdef"), st.sampled_from(["", "p", "q"]), st.integers(0, 3)),
    unique_by=lambda one: one.name,
)
pools = st.dictionaries(st.sampled_from("uvwxyz"), st.sampled_from([None, "", "p", "q", "r"]))


@given(texts, texts)
def test_a_ratio_is_at_least_one_and_never_above_what_was_set_or_is_borne(given: str | None, borne: str | None) -> None:
    found = effective_ratio(given, borne).value
    most = [ratio_of(text) or 0.0 for text in (given, borne) if text is not None]
    assert found >= 1.0
    assert given is not None or found == 1.0
    assert found == 1.0 or found <= min(most)


@given(amounts, ratios, st.integers(0, 1 << 41))
def test_figures_never_shrink_and_what_is_bound_is_sold_once(own: Amounts, ratio: float, bound: int) -> None:
    found, plain = own.times(ratio, bound=bound), own.times(ratio)
    assert own.allocatable <= found.allocatable <= plain.allocatable
    assert own.capacity <= found.capacity <= plain.capacity
    assert own.times(1.0, bound=bound) == own


@given(claims, pools, st.randoms())
def test_order_decides_nothing_and_each_node_is_listed_once(given, pools, random) -> None:  # type: ignore[no-untyped-def]
    rulers, shuffled = ruled(given, pools), list(given)
    random.shuffle(shuffled)
    assert ruled(shuffled, pools) == rulers
    listed = matched(given, rulers)
    assert sorted(node for nodes in listed.values() for node in nodes) == sorted(
        node for node, name in rulers.items() if name is not None
    )
    assert listed.keys() == {one.name for one in given}


@given(amounts, amounts, st.none() | ratios.map(str))
def test_what_others_write_never_becomes_the_original(own: Amounts, sent: Amounts, ratio: str | None) -> None:
    name: Resource = "cpu"
    said = NodeOvercommit(ratio={} if ratio is None else {name: ratio}, originals={name: own})
    once = admitted({name: sent}, said, by_kubelet=False)
    assert once.originals == {name: own}
    assert admitted(once.status, said, by_kubelet=False) == once
    assert admitted({name: own}, said, by_kubelet=True).status == once.status


def test_nothing_happens_to_what_others_write_before_kubelet_has() -> None:
    sent: dict[Resource, Amounts] = {"cpu": Amounts(1, 2)}
    found = admitted(sent, NodeOvercommit(ratio={"cpu": "2"}), by_kubelet=False)
    assert (found.status, found.originals) == (sent, None)


@given(st.integers(0, 64), st.integers(0, 64), st.floats(1, 5), st.integers(0, 200_000), st.integers(0, 9))
def test_more_requested_never_makes_a_pod_fit(own: int, bound: int, ratio: float, requested: int, more: int) -> None:
    def fits(asked: int, claim: CpuTaken) -> bool:
        node = OvercommittedNode(own * 1000, asked, own * 1000, min(bound, own), RatioPair(str(ratio)), binds_cpus=True)
        return overcommit_fit(claim, node).fits

    for claim in (CpuTaken(0, 500), CpuTaken(2, 0)):
        assert fits(requested, claim) or not fits(requested + more * 100, claim)


def test_a_pod_without_containers_takes_nothing() -> None:
    assert cpu_taken([]) == CpuTaken(0, 0)
    assert cpu_taken([ContainerClaim()]).nothing


# Kubelet and pods state whole milli-cores: of less than one, what rounding leaves of a difference would be a ratio.
CORES = st.integers(0, 64_000).map(lambda millis: millis / 1000)


@given(CORES, st.none() | CORES, CORES)
def test_who_uses_more_bears_no_more(request: float, usage: float | None, allocatable: float) -> None:
    found = bearable_ratio(ResourceLoad(request, usage, allocatable), CPU_RULES)
    assert found >= 1.0
    if usage is not None:
        assert bearable_ratio(ResourceLoad(request, usage + 1, allocatable), CPU_RULES) <= found


def test_what_a_node_and_its_cnr_say_of_bound_cpus() -> None:
    sold = {f"{DOMAIN}/cpu_overcommit_ratio": "2", f"{DOMAIN}/realtime_cpu_overcommit_ratio": "1.5"}
    sold |= {f"{DOMAIN}/original_{field}_cpu": "4" for field in ("allocatable", "capacity")}
    assert sold_node({"metadata": {"annotations": sold}}) == SoldNode(RatioPair("2", "1.5"), RatioPair(), 4000)
    assert sold_node({"metadata": {"annotations": {"other": "2"}}}) is None
    binding = {f"{DOMAIN}/overcommit_cpu_manager": "static", f"{DOMAIN}/guaranteed_cpus": "3"}
    assert kubelet_binding({"metadata": {"annotations": binding}}) == KubeletBinding(True, False, 3)
    binding[f"{DOMAIN}/overcommit_memory_manager"] = "Static"
    binding[f"{DOMAIN}/guaranteed_cpus"] = "-3"
    assert kubelet_binding({"metadata": {"annotations": binding}}) == KubeletBinding(True, True, 0)
    assert kubelet_binding({"metadata": {"annotations": {f"{DOMAIN}/overcommit_cpu_manager": "none"}}}) is None
    assert kubelet_binding({"metadata": {}}) is None
