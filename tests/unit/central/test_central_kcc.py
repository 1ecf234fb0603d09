"""Config objects: who may exist, which node gets which, and a whole pass; with laws."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.central.core.kcc.match import match
from services.central.core.kcc.targets import KccTarget, check_target
from services.central.core.objects.cnc import NodeConfig
from services.central.core.rollout.config_hash import hash_of
from services.central.core.rollout.rollout import NodeEntry, Rolled, roll_out, unused
from shared.errors import Refused

ALLOWED = {0: ["aa"], 5: ["aa", "bb"]}


def target(name: str, selector: str | None = None, names: list[str] | None = None, **fields: Any) -> KccTarget:
    return KccTarget.model_validate({"name": name, "label_selector": selector, "node_names": names} | fields)


def brief(name: str, *names: str, **fields: Any) -> KccTarget:
    """A target for a while, on nodes by name."""
    return target(name, names=list(names), last_duration="1h", **fields)


@pytest.mark.parametrize(
    ("own", "others", "why"),
    [
        pytest.param(target("g"), [], None, id="for all"),
        pytest.param(target("g"), [target("g"), target("s", "aa=x"), brief("n", "n1")], None, id="the only one"),
        pytest.param(target("g"), [target("h"), target("f", namespace="a")],
                     "global config default/g overlay with others: [a/f default/h]", id="three for all"),
        pytest.param(target("g"), [target("h", deleting=True)], None, id="the other one goes"),
        pytest.param(target("g", last_duration="1h"), [], "'1h': only with nodeNames", id="all for a while"),
        pytest.param(target("g", "", []), [], None, id="empty is not set"),
        pytest.param(target("b", "aa=x", ["n1"], last_duration="1h"), [], "want one of them", id="both"),
        pytest.param(brief("n", "n1", "n2"), [brief("m", "n3")], None, id="by name"),
        pytest.param(brief("n", "n1", "n2"), [brief("o", "n2"), brief("m", "n1", "n3"), target("s", "aa=x")],
                     "nodeNames overlay with others: [default/m default/o]", id="a name twice"),
        pytest.param(target("n", names=["n1"]), [], "without lastDuration", id="by name for ever"),
        pytest.param(brief("n", "n1") .model_copy(update={"last_duration": "soon"}), [], "'soon': want a duration",
                     id="no duration"),
        pytest.param(target("s", "aa=x"), [target("t", "aa in (y,z)")], None, id="other values"),
        pytest.param(target("s", "aa=x"), [target("t", "aa notin (y)"), target("r", "aa")],
                     "labelSelector overlay with others: [default/r default/t]", id="the same nodes"),
        pytest.param(target("s", "aa=x"), [target("t", "aa=x", priority=5)], None, id="another priority"),
        pytest.param(target("s", "aa=x", namespace="a"), [target("s", "aa=x")],
                     "labelSelector overlay with others: [default/s]", id="same name, other namespace"),
        pytest.param(target("s", "aa=x"), [target("t", "aa in x")], None, id="unreadable, so it claims nothing"),
        pytest.param(target("s", "aa in x"), [], "selector 'aa in x': found 'x', want '('", id="no selector"),
        pytest.param(target("s", "aa=x", last_duration="1h"), [], "only with nodeNames", id="a selector for a while"),
        pytest.param(target("s", "aa=x", priority=1), [], "priority 1: want one of [0 5]", id="no such priority"),
        pytest.param(target("s", "aa=x,bb=y,cc=z"), [], "asks for [bb cc]: with priority 0 want only [aa]", id="keys"),
        pytest.param(target("s", "aa=x,bb=y", priority=5), [], None, id="keys of another priority"),
    ],
)  # fmt: skip
def test_a_target_beside_the_others(own: KccTarget, others: list[KccTarget], why: str | None) -> None:
    if why is None:
        check_target(own, ALLOWED, others)
        return
    with pytest.raises(Refused) as refusal:
        check_target(own, ALLOWED, others)
    assert why in str(refusal.value)
    assert refusal.value.reason == "ValidateFailed"


def test_without_allowed_labels_no_selector_is_valid() -> None:
    with pytest.raises(Refused, match="allows no label"):
        check_target(target("s", "aa=x"), {}, [])


@pytest.mark.parametrize(
    ("targets", "matched", "selected"),
    [
        ([], [], None),
        ([target("g")], ["g"], "g"),
        ([target("g"), target("f")], ["f", "g"], None),
        ([target("g"), target("s", "aa=x"), brief("n", "n1")], ["n"], "n"),
        ([target("g", priority=99), target("s", "aa=x")], ["s"], "s"),
        ([target("s", "aa=y"), brief("n", "n2")], [], None),
        ([target("s", "aa"), target("t", "aa=x", priority=5)], ["s", "t"], "t"),
        ([target("s", "aa"), target("t", "aa=x"), target("r", "!bb", priority=-1)], ["r", "s", "t"], None),
        ([target("b", "aa=y", ["n1"]), target("c", "aa=x", ["n2"])], ["b"], "b"),
        ([target("s", "aa in x"), target("g")], ["g"], "g"),
        ([target("s", "aa=x", deleting=True), target("g")], ["g"], "g"),
    ],
)
def test_which_target_a_node_gets(targets: list[KccTarget], matched: list[str], selected: str | None) -> None:
    found = match("n1", {"aa": "x"}, targets)
    assert [one.name for one in found.matched] == matched
    if selected is None:
        with pytest.raises(Refused) as refusal:
            found.selected()
        assert refusal.value.reason == ("several_match" if matched else "none_match")
    else:
        assert found.selected().name == selected


NODES = [f"n{i}" for i in range(6)]


@st.composite
def any_target(draw: st.DrawFn) -> KccTarget:
    """A target, valid or not."""
    canary = draw(st.none() | st.sampled_from([0, 1, 99, "50%", "x"]))
    return target(
        draw(st.sampled_from("pqrs")),
        draw(st.none() | st.sampled_from(["aa=x", "aa in (x,y)", "aa!=x", "!aa", "bb=1", "aa in", "aa=y,bb=1"])),
        draw(st.none() | st.lists(st.sampled_from(NODES), max_size=2)),
        priority=draw(st.sampled_from([0, 0, 5, 7])),
        last_duration=draw(st.none() | st.just("1h")),
        update_strategy={"rollingUpdate": {"canary": canary}},
        paused=draw(st.booleans()),
        deleting=draw(st.sampled_from([False, False, True])),
        spec_config={"v": draw(st.integers(0, 2))},
    )


TARGETS = st.lists(any_target(), max_size=4, unique_by=lambda one: one.name)
LABELS = st.dictionaries(st.sampled_from(["aa", "bb"]), st.sampled_from(["x", "y", "1"]), max_size=2)
CONFIGS = st.none() | st.builds(
    NodeConfig, name=st.sampled_from("pqrst"), hash=st.sampled_from(["old", hash_of({"v": 1})])
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[KccTarget], list[NodeEntry]]:
    return draw(TARGETS), [NodeEntry(name, draw(LABELS), draw(CONFIGS)) for name in NODES]


@given(clusters(), st.randoms())
def test_the_order_of_targets_and_nodes_means_nothing(
    cluster: tuple[list[KccTarget], list[NodeEntry]], random: Random
) -> None:
    targets, nodes = cluster
    shuffled, mixed = random.sample(targets, len(targets)), random.sample(nodes, len(nodes))
    assert match("n1", {"aa": "x"}, targets) == match("n1", {"aa": "x"}, shuffled)
    one, two = roll_out(targets, ALLOWED, nodes), roll_out(shuffled, ALLOWED, mixed)
    assert one.nodes == two.nodes
    assert {key: str(found) for key, found in one.targets.items()} == {
        k: str(found) for k, found in two.targets.items()
    }


@given(clusters())
def test_a_node_gets_only_what_is_accepted_and_meant_for_it_or_keeps_what_it_has(
    cluster: tuple[list[KccTarget], list[NodeEntry]],
) -> None:
    targets, nodes = cluster
    done, by_name = roll_out(targets, ALLOWED, nodes), {one.name: one for one in targets}
    for node in nodes:
        config = done.nodes[node.name]
        if config == node.config:
            continue
        assert config is not None
        given_one = by_name[config.name]
        assert isinstance(done.targets[given_one.key], Rolled)
        assert not given_one.paused
        assert match(node.name, node.labels, targets).selected() == given_one
        assert config.hash == hash_of(given_one.spec_config)


@given(clusters())
def test_nodes_of_a_refused_target_keep_their_entry(cluster: tuple[list[KccTarget], list[NodeEntry]]) -> None:
    targets, nodes = cluster
    done = roll_out(targets, ALLOWED, nodes)
    refused = {key for key, found in done.targets.items() if isinstance(found, Refused)}
    for node in nodes:
        found = match(node.name, node.labels, targets)
        if any(one.key in refused for one in found.highest):
            assert done.nodes[node.name] == node.config


@given(clusters())
def test_counters_add_up(cluster: tuple[list[KccTarget], list[NodeEntry]]) -> None:
    targets, nodes = cluster
    done = roll_out(targets, ALLOWED, nodes)
    assert set(done.targets) == {one.key for one in targets if not one.deleting}
    rolled = [found for found in done.targets.values() if isinstance(found, Rolled)]
    for found in rolled:
        assert 0 <= found.canary_nodes <= found.target_nodes
        assert found.updated_target_nodes <= min(found.target_nodes, found.updated_nodes)
        assert found.updated_target_nodes >= found.canary_nodes
    assert sum(found.target_nodes for found in rolled) <= len(nodes)


@given(clusters())
def test_a_second_pass_changes_nothing_more(cluster: tuple[list[KccTarget], list[NodeEntry]]) -> None:
    targets, nodes = cluster
    first = roll_out(targets, ALLOWED, nodes)
    again = [NodeEntry(node.name, node.labels, first.nodes[node.name]) for node in nodes]
    assert roll_out(targets, ALLOWED, again).nodes == first.nodes


@given(clusters(), any_target())
def test_a_broken_object_does_not_stop_the_others(
    cluster: tuple[list[KccTarget], list[NodeEntry]], extra: KccTarget
) -> None:
    """An object that is refused and claims no node leaves every node that no refused object holds as without it."""
    targets, nodes = cluster
    broken = extra.model_copy(update={"name": "z", "label_selector": "aa in", "node_names": None, "deleting": False})
    assert roll_out([*targets, broken], ALLOWED, nodes).nodes == roll_out(targets, ALLOWED, nodes).nodes


def rolled(targets: list[KccTarget], *nodes: NodeEntry) -> Mapping[str, NodeConfig | None]:
    return roll_out(targets, ALLOWED, nodes).nodes


def has(name: str, digits: str = "old") -> NodeConfig:
    return NodeConfig(name=name, hash=digits)


def test_a_refused_edit_leaves_its_nodes_on_the_last_good_one() -> None:
    """The selector cannot be read any more, so nobody knows whom it was meant for."""
    nodes = NodeEntry("n1", {"aa": "x"}, has("s")), NodeEntry("n2", {}, has("g"))
    after = rolled([target("g"), target("s", "aa in x")], *nodes)
    assert after == {"n1": has("s"), "n2": has("g", hash_of({}))}


def test_a_node_leaves_a_refused_target_for_one_that_goes_before_it() -> None:
    nodes = NodeEntry("n1", {"aa": "x"}, has("g"))
    assert rolled([target("g"), target("h"), target("s", "aa=x")], nodes) == {"n1": has("s", hash_of({}))}


def test_a_canary_takes_the_first_nodes_by_name_and_then_more() -> None:
    def after(canary: int | str | None) -> list[str]:
        one = target("g", update_strategy={"rollingUpdate": {"canary": canary}})
        nodes = [NodeEntry(name, {}, has("g")) for name in reversed(NODES)]
        return [name for name, config in rolled([one], *nodes).items() if present(config).hash != "old"]

    assert [after(canary) for canary in (0, "34%", 3, None)] == [[], NODES[:2], NODES[:3], NODES]


def test_a_bad_canary_is_refused_alone() -> None:
    bad = target("s", "aa=x", update_strategy={"rollingUpdate": {"canary": "many"}})
    done = roll_out([target("g"), bad], ALLOWED, [NodeEntry("n1", {"aa": "x"}, None), NodeEntry("n2", {}, None)])
    assert done.nodes == {"n1": None, "n2": has("g", hash_of({}))}
    refused = done.targets["default/s"]
    assert isinstance(refused, Refused)
    assert refused.reason == "CalculateCanaryCutoffFailed"


def test_an_entry_is_unused_when_its_object_is_gone_and_none_is_for_the_node() -> None:
    nodes = [NodeEntry("n1", {}, has("gone")), NodeEntry("n2", {"aa": "x"}, has("gone")), NodeEntry("n3", {}, None)]
    nodes += [NodeEntry("n4", {}, has("s")), NodeEntry("n5", {}, has("d"))]
    assert unused([target("s", "aa=x"), target("d", deleting=True)], nodes) == ["n1", "n5"]
