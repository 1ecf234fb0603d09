"""`sublet config status`: counts, reasons and services, as text and for programs."""

from typing import Any

from sublet.views.conditions import conditions
from sublet.views.config import status
from sublet.views.facts import read

NO = {"revision": 12, "why": "evictor.cooling_s = -1: a number from 0 to 3600"}


def answers(**config: Any) -> dict[str, Any]:
    services = [
        {"service": "qrm", "ok": True, "config_revision": 12},
        {"service": "evictor", "ok": True, "config_revision": 11, "config_refused": NO},
    ]
    counts = {"applied": 41, "refused": 1, "behind": 0}
    row = {"service": "evictor", "revision": 12, "why": NO["why"], "nodes": 1, "such_as": ["node-7"]}
    told = {"file": "/x/config.yaml", "revision": 12, "refused": "", "nodes": counts, "refusals": [row]} | config
    return {"reporter": {"services": services}, "central": {"config": told}}


def test_one_node_refuses_and_says_why() -> None:
    document = status.as_json(read("node1", answers()))
    assert status.refused(document)
    assert list(status.lines(document)) == [
        "rev 12: 41 applied, 1 refused, 0 behind",
        f"  1 refuse rev 12: evictor: {NO['why']} (node-7)",
        "  qrm       works with rev 12",
        f"  evictor   refuses rev 12, works with rev 11: {NO['why']}",
    ]
    assert document["services"][1] == {"service": "evictor", "revision": 11, "refused": NO}


def test_all_is_well_where_nobody_refuses() -> None:
    told = answers(nodes={"applied": 42, "refused": 0, "behind": 0}, refusals=[])
    told["reporter"] = None
    document = status.as_json(read("node1", told))
    assert not status.refused(document)
    assert list(status.lines(document)) == ["rev 12: 42 applied, 0 refused, 0 behind"]


def test_the_status_screen_says_it_too() -> None:
    words = f"evictor refuses revision 12, revision 11 stays in force: {NO['why']}"
    assert ("ConfigRefused", words) in conditions(read("node1", answers()))


def test_a_file_that_central_refuses_is_named() -> None:
    document = status.as_json(read("node1", answers(refused="no section 'evicter'", refusals=[])))
    assert "  central refuses /x/config.yaml: no section 'evicter'" in status.lines(document)


def test_words_of_a_hostile_node_are_no_commands_of_the_terminal() -> None:
    row = {"service": "e\x1b[2J", "revision": 12, "why": "\x1b]0;x\x07\nsecond", "nodes": 9, "such_as": ["a"]}
    text = "\n".join(status.lines(status.as_json(read("node1", answers(refusals=[row])))))
    assert "\x1b" not in text
    assert "a and 8 more" in text


def test_an_answer_of_another_shape_counts_as_not_told() -> None:
    document = status.as_json(read("node1", answers(refusals="many")))
    assert (document["revision"], document["refusals"]) == (None, [])
    assert next(iter(status.lines(document))) == "rev 0: no node is counted yet"
