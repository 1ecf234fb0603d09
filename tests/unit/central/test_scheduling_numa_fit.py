"""Bound pods: which are, on which NUMA nodes their containers would lie, and that no choice is passed over."""

from collections.abc import Mapping
from itertools import chain, combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.central.core.scheduling.numa.binding import BindableContainer, BindablePod, NumaBinding
from services.central.core.scheduling.numa.fit import NumaPlaces, numa_fit
from services.central.core.scheduling.numa.machine import Machine, NumaNode, NumaTaken, TopologyPolicy, counted
from services.central.core.scheduling.numa.numeric import best_sets, least_count
from services.central.core.scheduling.numa.room import Room

Amounts = Mapping[str, int]
GPU = "nvidia.com/gpu"
NATIVE, DYNAMIC = NumaBinding("native"), NumaBinding()
UNASKED = NumaPlaces(applies=False)


def node(node_id: int, cpus: int, *, taken_cpus: int = 0, socket: int = 0, **more: int) -> NumaNode:
    allocatable = {"cpu": cpus * 1000, "memory": cpus} | {GPU if name == "gpu" else name: n for name, n in more.items()}
    taken = [{"cpu": taken_cpus * 1000, "memory": taken_cpus}]
    return NumaNode.of(node_id, socket, (allocatable, allocatable), taken)


def machine(*nodes: NumaNode, topology: TopologyPolicy = "single_numa_container") -> Machine:
    return Machine(topology, nodes)


def container(name: str, cpus: float, **more: int) -> BindableContainer:
    requests = {"cpu": int(cpus * 1000), "memory": int(cpus)} | more
    return BindableContainer(name, {GPU if key == "gpu" else key: amount for key, amount in requests.items() if amount})


def dedicated(*containers: BindableContainer, exclusive: bool = False) -> BindablePod:
    return BindablePod(containers, "dedicated_cores", numa_binding=True, numa_exclusive=exclusive)


def places(pod: BindablePod, on: Machine, binding: NumaBinding = DYNAMIC) -> Mapping[str, list[int]] | None:
    found = numa_fit(pod, binding, on)
    assert found.applies
    return found.nodes if found.fits else None


def guaranteed(*containers: BindableContainer) -> BindablePod:
    return BindablePod(containers)


TWO = (node(0, 4), node(1, 4))


@pytest.mark.parametrize(
    ("pod", "binding", "topology"),
    [
        pytest.param(guaranteed(container("c", 1.5)), NATIVE, "single_numa_pod", id="no whole CPU"),
        pytest.param(
            guaranteed(container("c", 1), BindableContainer("i", {"cpu": 500, "memory": 1}, init=True)),
            NATIVE, "single_numa_pod", id="an init container without a whole CPU",
        ),
        pytest.param(
            guaranteed(BindableContainer("c", {"cpu": 1000, "memory": 1}, limits={"cpu": 2000, "memory": 1})),
            NATIVE, "single_numa_pod", id="a limit above the request",
        ),
        pytest.param(guaranteed(BindableContainer("c", {"cpu": 1000})), NATIVE, "single_numa_pod", id="no memory"),
        pytest.param(guaranteed(container("c", 1)), NATIVE, "numeric_container", id="numeric is not kubelet's"),
        pytest.param(dedicated(container("c", 1)), DYNAMIC, "single_numa_pod", id="pod level is kubelet's alone"),
        pytest.param(dedicated(container("c", 1)), DYNAMIC, "none", id="the node does not bind"),
        pytest.param(
            BindablePod((container("c", 1),), "dedicated_cores"), DYNAMIC, "single_numa_container", id="unbound"
        ),
        pytest.param(
            BindablePod((container("c", 1),), numa_binding=True), DYNAMIC, "single_numa_container", id="not dedicated"
        ),
    ],
)  # fmt: skip
def test_what_is_not_bound_fits_unasked(pod: BindablePod, binding: NumaBinding, topology: TopologyPolicy) -> None:
    assert numa_fit(pod, binding, machine(node(0, 0), topology=topology)) == UNASKED


def test_a_machine_of_more_nodes_than_kubelet_takes_is_left_to_itself_where_sets_would_be_looked_for() -> None:
    many = [node(number, 1) for number in range(9)]
    assert numa_fit(dedicated(container("c", 2)), DYNAMIC, machine(*many, topology="numeric_container")) == UNASKED
    assert places(dedicated(container("c", 1)), machine(*many)) == {"c": [0]}


@pytest.mark.parametrize(
    ("pod", "nodes", "binding", "wanted"),
    [
        pytest.param(guaranteed(container("c", 2)), TWO, NATIVE, {"c": [0]}, id="the lowest"),
        pytest.param(
            guaranteed(container("c", 3)), (node(0, 4, taken_cpus=2), node(1, 4)), NATIVE, {"c": [1]}, id="room"
        ),
        pytest.param(guaranteed(container("c", 5)), TWO, NATIVE, None, id="too large for one"),
        pytest.param(
            guaranteed(container("a", 3), container("b", 3)), TWO, NATIVE, {"a": [0], "b": [1]}, id="what is left"
        ),
        pytest.param(
            guaranteed(container("a", 3), container("b", 3), container("c", 3)), TWO, NATIVE, None, id="one too many"
        ),
        pytest.param(guaranteed(container("c", 1, gpu=1)), TWO, NATIVE, {"c": [0]}, id="a device that no node lists"),
        pytest.param(guaranteed(container("c", 1, Gpu=1)), TWO, NATIVE, None, id="a plain name that no node lists"),
        pytest.param(
            guaranteed(BindableContainer("c", {"cpu": 1000, "memory": 1, "kubernetes.io/x": 1})), TWO, NATIVE, None,
            id="one of Kubernetes' own that no node lists",
        ),
        pytest.param(
            guaranteed(container("c", 1, gpu=1)), (node(0, 4), node(1, 4, gpu=1)), NATIVE, {"c": [1]}, id="a listed one"
        ),
        pytest.param(
            guaranteed(BindableContainer("c", {"cpu": 1000, "memory": 1, "Gpu": 0})), TWO, NATIVE, {"c": [0]},
            id="nothing asked of what is not there",
        ),
        pytest.param(
            dedicated(container("c", 1), exclusive=True), (node(0, 4, taken_cpus=1), node(1, 4)), DYNAMIC, {"c": [1]},
            id="exclusive: an idle one",
        ),
        pytest.param(
            dedicated(container("a", 1), container("b", 1), exclusive=True), TWO, DYNAMIC, {"a": [0], "b": [1]},
            id="exclusive: one each",
        ),
        pytest.param(
            BindablePod((container("a", 1), container("b", 1)), numa_exclusive=True), TWO, NATIVE, {"a": [0], "b": [0]},
            id="kubelet knows no exclusive",
        ),
    ],
)  # fmt: skip
def test_a_container_gets_the_lowest_node_that_has_everything(
    pod: BindablePod, nodes: tuple[NumaNode, ...], binding: NumaBinding, wanted: Mapping[str, list[int]] | None
) -> None:
    assert places(pod, machine(*nodes), binding) == wanted


def test_init_containers_are_gone_and_an_agent_leaves_sidecars_alone() -> None:
    init = BindableContainer("init", {"cpu": 9000, "memory": 1}, init=True)
    sidecar = BindableContainer("sidecar", {"cpu": 4000, "memory": 1}, sidecar=True)
    main = container("main", 4)
    assert places(dedicated(init, sidecar, main), machine(node(0, 4))) == {"main": [0]}
    assert places(guaranteed(init, sidecar, main), machine(node(0, 4)), NATIVE) is None


def test_a_pod_as_a_whole_takes_its_effective_request_of_one_node() -> None:
    init = BindableContainer("init", {"cpu": 3000, "memory": 1}, init=True)
    pod = guaranteed(init, container("a", 1), container("b", 1))
    assert places(pod, machine(node(0, 2), node(1, 3), topology="single_numa_pod"), NATIVE) == {"pod": [1]}


def numeric(*nodes: NumaNode) -> Machine:
    return machine(*nodes, topology="numeric_container")


EIGHT = tuple(node(number, 4, socket=number // 4) for number in range(8))


@pytest.mark.parametrize(
    ("pod", "nodes", "wanted"),
    [
        pytest.param(dedicated(container("c", 4)), TWO, {"c": [0]}, id="bound to one"),
        pytest.param(dedicated(container("c", 5)), TWO, None, id="bound to one, and too large for it"),
        pytest.param(dedicated(container("c", 5), exclusive=True), TWO, {"c": [0, 1]}, id="exclusive: two"),
        pytest.param(
            dedicated(container("c", 5), exclusive=True), (node(0, 4, taken_cpus=1), *EIGHT[1:3]), {"c": [1, 2]},
            id="exclusive: idle ones",
        ),
        pytest.param(
            dedicated(container("a", 5), container("b", 1), exclusive=True), EIGHT, {"a": [0, 1], "b": [2]},
            id="a node that was given is given whole",
        ),
        pytest.param(
            dedicated(container("c", 8), exclusive=True),
            (node(0, 4, taken_cpus=1), node(1, 4), node(2, 4, socket=1), node(3, 4, socket=1)), {"c": [2, 3]},
            id="within a socket",
        ),
        pytest.param(
            dedicated(container("c", 8), exclusive=True),
            (node(0, 4), node(1, 4, taken_cpus=1), node(2, 4, socket=1), node(3, 4, taken_cpus=1, socket=1)), None,
            id="two that are left in two sockets",
        ),
        pytest.param(
            dedicated(container("c", 10), exclusive=True),
            (node(0, 4), node(1, 4), node(2, 4, socket=1), node(3, 4, taken_cpus=1, socket=1)), {"c": [0, 1, 2]},
            id="more than a socket has",
        ),
        pytest.param(dedicated(container("c", 4, gpu=1)), TWO, {"c": [0]}, id="a resource that no node lists"),
        pytest.param(
            dedicated(container("c", 4, gpu=1)), (node(0, 4), node(1, 4, gpu=1)), {"c": [1]},
            id="near its device: both at their minimum count",
        ),
        pytest.param(
            dedicated(container("c", 4, gpu=2)), (node(0, 4, gpu=1), node(1, 4), node(2, 4, gpu=1)), {"c": [0]},
            id="devices on several nodes around its own",
        ),
        pytest.param(
            dedicated(container("c", 4, gpu=3)), (node(0, 4, gpu=1), node(1, 4, gpu=1)), None, id="too few devices"
        ),
        pytest.param(
            dedicated(BindableContainer("c", {GPU: 2})),
            (node(0, 4, gpu=1), node(1, 4), node(2, 4, gpu=1)),
            {"c": [0, 2]},
            id="nothing aligned asked for: the device's",
        ),
        pytest.param(dedicated(BindableContainer("c", {"cpu": 0})), TWO, {"c": []}, id="nothing asked for at all"),
    ],
)  # fmt: skip
def test_a_container_gets_a_number_of_nodes(
    pod: BindablePod, nodes: tuple[NumaNode, ...], wanted: Mapping[str, list[int]] | None
) -> None:
    assert places(pod, numeric(*nodes)) == wanted


def test_an_exclusive_container_gets_its_nodes_whole_also_of_what_one_of_them_had_enough() -> None:
    first = BindableContainer("a", {"cpu": 5000, "memory": 1})
    pod = dedicated(first, BindableContainer("b", {"memory": 1}), exclusive=True)
    assert places(pod, numeric(*TWO)) is None
    assert places(pod, numeric(*TWO, node(2, 4))) == {"a": [0, 1], "b": [2]}


def test_the_minimum_count_takes_large_nodes_first_and_says_all_where_all_are_too_few() -> None:
    unequal = numeric(node(0, 1), node(1, 2), node(2, 4))
    assert [least_count("cpu", cpus * 1000, unequal) for cpus in (1, 4, 5, 7, 8)] == [1, 1, 2, 3, 3]


def test_only_dedicated_pods_count_where_the_agent_binds() -> None:
    taken = [NumaTaken({"cpu": 1}), NumaTaken({"cpu": 2}, dedicated=True)]
    assert counted(taken, "dynamic") == [{"cpu": 2}]
    assert counted(taken, "native") == [{"cpu": 1}, {"cpu": 2}]


def test_what_was_taken_beyond_what_is_allocatable_leaves_nothing() -> None:
    assert node(0, 2, taken_cpus=3).available == {"cpu": 0, "memory": 0}


def valid_choices(
    asked: Amounts, on: Machine, exclusive: bool
) -> list[tuple[tuple[int, int], dict[str, frozenset[int]]]]:
    """Every choice that the rule allows, straight from its words, with how many have their minimum count."""
    ids = [one.id for one in on.numas]
    room = Room(on)
    every = [
        frozenset(some) for some in chain.from_iterable(combinations(ids, size) for size in range(1, len(ids) + 1))
    ]
    socket = {one.id: one.socket for one in on.numas}
    least = {name: least_count(name, amount, on) for name, amount in asked.items()}

    def does(name: str, nodes: frozenset[int]) -> bool:
        enough = len(nodes) >= least[name] and room.on(nodes, name) >= asked[name]
        if name == GPU or not enough:
            return enough
        across = len({socket[one] for one in nodes}) > 1
        idle = nodes <= room.idle(name)
        return (idle if exclusive else len(nodes) == 1) and not (len(nodes) <= on.per_socket and across)

    found = []
    for sets in product(*([nodes for nodes in every if does(name, nodes)] for name in asked)):
        choice = dict(zip(asked, sets, strict=True))
        together = {name for name in choice if name != GPU}
        same = len({choice[name] for name in together}) <= 1
        some_least = not together or any(len(choice[name]) == least[name] for name in together)
        nested = all(one <= other or other <= one for one, other in combinations(sets, 2))
        if same and some_least and nested:
            preferred = sum(len(choice[name]) == least[name] for name in choice.keys() - together)
            found.append(((-preferred, max(map(len, sets))), choice))
    return found


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=4
    ),
    st.integers(1, 9),
    st.integers(0, 4),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_law_the_choice_is_one_that_the_rule_allows_and_none_is_preferred_to_it(
    shape: list[tuple[int, int, int, int]], cpus: int, gpus: int, exclusive: bool
) -> None:
    nodes = [node(i, most, taken_cpus=min(taken, most), socket=socket, gpu=gpu)
             for i, (most, taken, socket, gpu) in enumerate(shape)]  # fmt: skip
    on, asked = numeric(*nodes), {"cpu": cpus * 1000, "memory": 1} | ({GPU: gpus} if gpus else {})
    found = best_sets(asked, Room(on, ("cpu", "memory") if exclusive else ()), frozenset({"cpu", "memory"}))
    allowed = valid_choices(asked, on, exclusive)
    if found is None:
        assert not allowed
        return
    best = min(key for key, _ in allowed)
    first = min((len(c["cpu"]), sorted(c["cpu"])) for key, c in allowed if key == best)
    assert (len(found["cpu"]), sorted(found["cpu"])) == first
    assert (best, found) in allowed


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 3), st.booleans(), st.sampled_from(
    ["numeric_container", "single_numa_container"]), st.data())  # fmt: skip
def test_law_a_node_that_becomes_free_takes_no_place_away(
    taken: list[int], cpus: int, exclusive: bool, topology: TopologyPolicy, data: st.DataObject
) -> None:
    pod = dedicated(container("a", cpus), container("b", 1), exclusive=exclusive)
    freed = data.draw(st.integers(0, len(taken) - 1))
    before = [node(i, 4, taken_cpus=cpus_taken) for i, cpus_taken in enumerate(taken)]
    after = [node(i, 4, taken_cpus=0 if i == freed else cpus_taken) for i, cpus_taken in enumerate(taken)]
    fits = [numa_fit(pod, DYNAMIC, machine(*nodes, topology=topology)).fits for nodes in (before, after)]
    assert fits[1] or not fits[0]


def test_law_as_many_nodes_and_resources_as_there_may_be_are_looked_through() -> None:
    """Of 20 devices that lie badly all but a few have no say, so the search ends."""
    devices = {f"d/{number:02}": 1 for number in range(20)}
    nodes = [node(i, 4, socket=i // 4, **{name: int(i == int(name[2:]) % 8) for name in devices}) for i in range(8)]
    pod = dedicated(BindableContainer("c", {"cpu": 13_000, "memory": 1} | devices), exclusive=True)
    assert places(pod, numeric(*nodes)) == {"c": [0, 1, 2, 3]}
