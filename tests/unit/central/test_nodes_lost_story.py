"""What would happen if nodes fell silent is told by central's own rules."""

import json
from typing import Any

import pytest

from sublet import whatif as door

KNOWN = door.kinds()
NODES = [{"name": f"n{i:03}", "pool": f"p{i % 4}", "zone": f"z{i % 2}", "reclaimed_pods": 3} for i in range(100)]


def story(silent: int, **more: Any) -> dict[str, Any]:
    question = {"nodes": NODES, "silent": [f"n{i:03}" for i in range(silent)], **more}
    line, well = door.ask(KNOWN, "nodes_lost", json.dumps(question).encode())
    assert well, line
    answer: dict[str, Any] = json.loads(line)
    return answer


def kinds(told: dict[str, Any]) -> list[str]:
    return [moment["what"] for moment in told["moments"]]


def test_one_node_is_withdrawn_then_tainted_then_freed_of_its_pods_in_that_order() -> None:
    told = story(1)
    assert kinds(told) == ["withdrawn", "tainted", "evicted", "evicted"]
    at_s = [moment["at_s"] for moment in told["moments"]]
    assert (at_s[0] > 30, at_s[1] > 600, at_s[2] > 1200) == (True, True, True)
    assert (told["evicted_pods"], told["kept_pods"]) == (3, 0)


def test_no_pod_goes_where_the_agents_are_ready_or_kubernetes_has_lost_the_nodes() -> None:
    assert kinds(story(1, agents_ready=True)) == ["withdrawn", "tainted"]
    assert kinds(story(1, nodes_stale=True)) == ["withdrawn"]


def test_a_third_of_all_pauses_everything_and_no_pod_goes() -> None:
    told = story(33)
    assert kinds(told) == ["paused", "withdrawn"]
    assert (told["tainted"], told["evicted_pods"], told["kept_pods"]) == (0, 0, 99)
    assert "33 of 100 nodes look bad, at most 20 may" in told["moments"][0]["why"]


def test_so_many_at_once_that_they_have_one_cause_wait_and_are_then_taken_one_by_one() -> None:
    told = story(8)
    assert kinds(told)[:3] == ["paused", "withdrawn", "resumed"]
    resumed_s = next(moment["at_s"] for moment in told["moments"] if moment["what"] == "resumed")
    assert resumed_s > 30 + 900
    assert told["tainted"] == 8


def test_a_node_that_observes_keeps_its_pods() -> None:
    nodes = [{**node, "observes": True} for node in NODES]
    assert kinds(story(1, nodes=nodes)) == ["withdrawn"]


def test_all_of_them_and_the_only_one_are_never_acted_on() -> None:
    assert story(100)["evicted_pods"] == 0
    assert story(1, nodes=NODES[:1])["tainted"] == 0


def test_a_node_that_is_not_there_is_refused_by_name() -> None:
    line, well = door.ask(KNOWN, "nodes_lost", json.dumps({"nodes": NODES, "silent": ["nowhere"]}).encode())
    assert not well or json.loads(line).get("error")
    assert "nowhere" in line


@pytest.mark.parametrize("wrong", [{"silent": []}, {"until_s": 0}, {"until_s": 1e9}, {"unknown": 1}])
def test_what_makes_no_question_is_refused(wrong: dict[str, Any]) -> None:
    question = {"nodes": NODES, "silent": ["n001"], **wrong}
    line, well = door.ask(KNOWN, "nodes_lost", json.dumps(question).encode())
    assert not well
    assert "invalid_input" in line
