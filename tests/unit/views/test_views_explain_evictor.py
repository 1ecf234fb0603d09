"""What `sublet explain pod/x` says of evictions that did not happen."""

from collections.abc import Callable
from typing import Any

import pytest
from present import present

from sublet.views.explain.chain import chain
from sublet.views.explain.chain_text import lines
from sublet.views.facts import read

ENCODE = {
    "pod": "default/encode",
    "uid": "bb",
    "why": {"rule": "largest use first", "numbers": {"qos": "reclaimed_cores", "usage_bytes": 4096, "priority": None}},
}
OTHER = {"pod": "default/other", "uid": "cc", "why": {"rule": "largest use first", "numbers": {}}}
FREE = {"guard": None, "says": ""}
HELD = {
    "pod": "", "uid": "", "plugin": "memory", "guard": "cooling", "why": "the next may begin in 9 s", "count": 7,
    "first_age_s": 6.0, "last_age_s": 0.5,
}  # fmt: skip


def told(seen: dict[str, Any], refusals: list[dict[str, Any]] | tuple[()] = (), **plugin: Any) -> dict[str, Any]:
    outlook = {
        "met": False, "hard": True, "scope": "memory", "observed": 2048.0, "threshold": 1024.0, "below": True,
        "line": [OTHER | FREE, ENCODE | FREE],
    }  # fmt: skip
    seat = {"mode": "enforce", "hold": "not_met"} | plugin
    return {"outlook": {"memory": outlook | seen}, "plugins": {"memory": seat}, "refusals": list(refusals)}


@pytest.fixture
def explained(answers: dict[str, Any]) -> Callable[..., Any]:
    def explain(evictor: dict[str, Any]) -> list[str]:
        answered = answers | {"evictor": answers["evictor"] | evictor}
        document = present(chain(read("node1", answered), [], "default", "encode"))
        text = list(lines(document))
        return text[text.index("    reclaim: CPU 1.25, load1 -, memory -") + 1 : -1]

    return explain


def test_far_from_pressure_it_says_what_would_evict_the_pod(explained: Callable[..., Any]) -> None:
    assert explained(told({})) == [
        "  watched by memory (enforce), scope memory: observed 2.0 KiB, acts below 1.0 KiB, calm",
        "    number 2 of 2 in line by largest use first (qos reclaimed_cores, usage_bytes 4096, priority -)",
    ]


def test_under_pressure_it_says_what_holds_the_plugin_back(explained: Callable[..., Any]) -> None:
    assert explained(told({"met": True, "observed": 512.0}, [HELD], hold="cooling")) == [
        "  under pressure of memory (enforce), scope memory: observed 512 B, acts below 1.0 KiB, hard pressure, "
        "held back: cooling",
        "    number 2 of 2 in line by largest use first (qos reclaimed_cores, usage_bytes 4096, priority -)",
        "  not evicted (cooling; 7 times, last 0 s ago): memory: the next may begin in 9 s",
    ]


def test_a_pod_whose_turn_it_is_is_about_to_go(explained: Callable[..., Any]) -> None:
    seen = {"met": True, "observed": 512.0, "line": [ENCODE | FREE]}
    assert explained(told(seen, hold=None))[0].startswith("  is about to be evicted by memory")


def test_a_guard_that_spares_the_pod_is_named_with_its_words(explained: Callable[..., Any]) -> None:
    spared = ENCODE | {"guard": "protected_namespace", "says": "no pod of it is ever evicted"}
    refusal = HELD | {
        "pod": "default/encode",
        "uid": "bb",
        "guard": "protected_namespace",
        "why": "so it is",
        "count": 1,
    }
    text = explained(told({"line": [spared]}, [HELD, refusal]))
    assert text[0].startswith("  is spared by memory")
    assert text[1].endswith("; protected_namespace: no pod of it is ever evicted")
    assert text[2:] == ["  not evicted (protected_namespace; last 0 s ago): so it is"]


def test_a_pod_that_no_plugin_would_take(explained: Callable[..., Any]) -> None:
    assert explained(told({"line": [OTHER | FREE]})) == [
        "  no plugin would evict it: its going would help none of them"
    ]


def test_a_successor_of_the_name_is_not_told_the_refusals_of_the_one_before(explained: Callable[..., Any]) -> None:
    refusal = HELD | {"pod": "default/encode", "uid": "dead"}
    assert not any("not evicted" in line for line in explained(told({}, [refusal])))
