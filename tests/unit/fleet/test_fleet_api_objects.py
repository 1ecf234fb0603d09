"""The fleet's API server keeps versions, tells watches, and merges what central applies."""

import json
from itertools import islice

import pytest

from services.central.core.lost_nodes.cnr_conditions import conditions_of
from services.central.core.lost_nodes.verdict import Judged
from services.central.core.objects.companions import companion_change, companion_of
from services.central.core.objects.nodes import agent_of, lease_of, node_of
from sublet.fleet import documents
from sublet.fleet.api_objects import ApiObjects, InTheWay, NotThere, turns


def test_central_finds_nothing_to_mend_in_a_fleets_objects() -> None:
    node = node_of(documents.node(3, "n3"))
    for document in (documents.node_object(3, "n3"), documents.node_config(3, "n3")):
        assert companion_change(node, companion_of(document)) is None
    standing = {(one.type, one.status, one.reason) for one in companion_of(documents.node_object(3, "n3")).conditions}
    wanted = {(one.type, one.status, one.reason) for one in conditions_of(Judged("ready", ""), "Ready", well=True)}
    assert standing == wanted
    assert (node.ready, bool(node.offered)) == (True, True)
    agent = agent_of(documents.agent("n3"))
    assert agent is not None
    assert (agent.node, agent.ready, lease_of(documents.lease("n3")).node) == ("n3", True, "n3")


def test_a_change_has_a_new_version_and_is_told() -> None:
    objects = ApiObjects()
    watch = objects.watch("/nodes")
    first = objects.put("/nodes", documents.node(0, "n0"))["metadata"]["resourceVersion"]
    objects.change("/nodes/n0", {"status": {"allocatable": {"cpu": "0"}}}, status=True)
    told = [json.loads(line or b"") for line in (watch.get_nowait(), watch.get_nowait())]
    assert [one["type"] for one in told] == ["ADDED", "MODIFIED"]
    assert told[1]["object"]["status"]["allocatable"]["cpu"] == "0"
    assert told[1]["object"]["status"]["allocatable"]["pods"] == "110"
    with pytest.raises(InTheWay):
        objects.change("/nodes/n0", {"metadata": {"resourceVersion": first}}, status=False)
    with pytest.raises(NotThere):
        objects.get("/nodes/n1")


def test_conditions_are_merged_by_their_type() -> None:
    objects = ApiObjects()
    objects.put("/cnrs", documents.node_object(0, "n0"))
    rows = [one.row(documents.BORN) for one in conditions_of(Judged("suspect", "", 40.0), "Ready", well=False)]
    objects.change("/cnrs/n0", {"status": {"conditions": rows}}, status=True)
    standing = {row["type"]: row["status"] for row in objects.get("/cnrs/n0")["status"]["conditions"]}
    assert (standing["ReclaimedWithdrawn"], standing["ServicesReady"]) == ("True", "True")


def test_pages_hold_every_document_once() -> None:
    objects = ApiObjects()
    for number in range(7):
        objects.put("/nodes", documents.node(number, f"n{number}"))
    pages = [objects.page("/nodes", first, 3) for first in (0, 3, 6)]
    assert [len(found) for found, _ in pages] == [3, 3, 1]
    assert [left for _, left in pages] == [4, 1, 0]
    assert objects.page("/none", 0, 3) == ([], 0)


def test_each_comes_in_turn_once_in_a_period() -> None:
    ticks = [place % 7 for places in islice(turns(7, 10.0, 0.1), 100) for place in places]
    assert sorted(ticks) == list(range(7))
