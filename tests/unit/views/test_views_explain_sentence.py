"""`sublet explain pod/x` begins with a sentence that a person understands, in units and lines for people."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from shared.contracts.eviction import EvictionEvent
from sublet.views.explain.brief import WIDTH, brief_lines, wrapped
from sublet.views.explain.chain import Document, chain
from sublet.views.explain.sentence import pod_sentence
from sublet.views.facts import read
from sublet.views.figures import amount

GIB = 1 << 30
ENCODE = {"pod": "default/encode", "uid": "bb", "why": {"rule": "largest use first", "numbers": {}}}
OTHER = {"pod": "default/other", "uid": "cc", "why": {"rule": "largest use first", "numbers": {}}}
FREE = {"guard": None, "says": ""}
MEMORY = {
    "met": False, "hard": True, "scope": "SystemMemory", "observed": 16.0 * GIB, "threshold": 1.0 * GIB, "below": True,
    "line": [ENCODE | FREE],
}  # fmt: skip
FAR = "safe: 16 times away from the nearest limit (node memory)"
SHORT = "node memory is 512.0 MiB, evictions begin below 1.0 GiB"
LOAD = MEMORY | {"scope": "cpu.load.1min.container", "observed": 2.0, "threshold": 64.8, "below": False}


@pytest.fixture
def explained(answers: dict[str, Any]) -> Callable[..., Document]:
    def explain(*outlooks: dict[str, Any], mode: str = "enforce", hold: str | None = None, **more: Any) -> Document:
        evictor: dict[str, Any] = {
            "outlook": {f"p{number}": seen for number, seen in enumerate(outlooks)},
            "plugins": {f"p{number}": {"mode": mode, "hold": hold} for number, _ in enumerate(outlooks)},
        }
        answered = answers | {"evictor": answers["evictor"] | evictor | more}
        return present(chain(read("node1", answered), [], "default", "encode"))

    return explain


@pytest.mark.parametrize(
    ("outlooks", "more", "words"),
    [
        pytest.param([MEMORY], {}, f"runs; {FAR}", id="far"),
        pytest.param([LOAD, MEMORY], {}, f"runs; {FAR}", id="nearest"),
        pytest.param([LOAD], {}, "runs; safe: 32 times away from the nearest limit (CPU load of its pool)", id="above"),
        pytest.param([LOAD | {"observed": 0.0}], {},
                     "runs; safe: more than 1000 times away from the nearest limit (CPU load of its pool)", id="zero"),
        pytest.param([MEMORY | {"observed": 1.25 * GIB}], {},
                     "runs; near a limit: node memory is 1.2 GiB, evictions begin below 1.0 GiB", id="near"),
        pytest.param([MEMORY | {"met": True, "observed": 0.5 * GIB}], {},
                     f"runs; about to be evicted: {SHORT}", id="due"),
        pytest.param([MEMORY | {"met": True, "observed": 0.5 * GIB}], {"hold": "cooling"},
                     f"runs; under pressure: {SHORT}, held back: cooling",
                     id="held"),
        pytest.param([MEMORY | {"line": [OTHER | FREE]}], {}, "runs; safe: no plugin would evict it", id="not in line"),
        pytest.param([MEMORY | {"line": [ENCODE | {"guard": "critical", "says": "kubelet's own"}]}], {},
                     "runs; safe: it is spared (critical: kubelet's own)", id="spared"),
        pytest.param([MEMORY | {"met": True}], {"mode": "observe"},
                     "runs; safe: plugins that could evict it only watch", id="watching"),
        pytest.param([MEMORY], {"conditions": [{"type": "EvictionsPaused", "message": "by hand"}]},
                     f"runs; {FAR}; evictions are paused", id="paused"),
    ],
)  # fmt: skip
def test_the_sentence(
    explained: Callable[..., Document], outlooks: list[dict[str, Any]], more: dict[str, Any], words: str
) -> None:
    assert pod_sentence(explained(*outlooks, **more)) == words


def test_without_the_evictor_it_says_what_is_not_known(answers: dict[str, Any]) -> None:
    document = present(chain(read("node1", answers | {"evictor": None}), [], "default", "encode"))
    assert pod_sentence(document) == "runs; what could evict it is not known: the evictor does not answer"


def test_a_node_that_observes_is_said_to_do_nothing(explained: Callable[..., Document]) -> None:
    document = explained(MEMORY) | {"observes": True}
    assert pod_sentence(document) == f"runs; {FAR}; the node only observes, so nothing is done to it"


def test_a_pod_that_was_evicted(answers: dict[str, Any], events: list[EvictionEvent]) -> None:
    document = present(chain(read("node1", answers), events, "default", "gone"))
    assert pod_sentence(document) == (
        "was evicted by reclaimed-resource-pressure-eviction-plugin: "
        "CPU that reclaimed pods ask for was 36.00 cores, the limit is 20.00 cores"
    )


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        pytest.param({"exit_codes": [137], "reasons": ["OOMKilled"], "message": "above its limit 64Mi"},
                     "was killed for memory: above its limit 64Mi (exit code 137)", id="memory"),
        pytest.param({"exit_codes": [0], "reasons": [], "message": ""}, "has ended with exit code 0", id="well"),
        pytest.param({"exit_codes": [3], "reasons": ["Deleted"], "message": ""},
                     "has ended with exit code 3 (Deleted)", id="deleted"),
    ],
)  # fmt: skip
def test_a_pod_that_has_ended_is_told_by_its_record(answers: dict[str, Any], ended: Document, words: str) -> None:
    document = present(chain(read("node1", answers), [], "default", "job", ended | {"ended_at": None}))
    assert pod_sentence(document) == words


def test_the_brief_text_says_calm_of_what_is_calm(explained: Callable[..., Document]) -> None:
    text = "\n".join(brief_lines(explained(MEMORY, LOAD)))
    assert text.startswith("pod default/encode runs; safe: 16 times away from the nearest limit (node memory)\n")
    assert "node memory is 16.0 GiB, acts below 1.0 GiB (calm; p0, turn 1 of 1)" in text
    assert "would be evicted" not in text
    assert "42.00 cores" not in text, "the advice stands behind -o wide"
    assert text.endswith("sublet explain pod/encode -n default -o wide")


@given(st.lists(st.text("abc ,-", max_size=400), max_size=5))
def test_no_line_is_wider_than_a_terminal_and_no_word_is_lost(lines: list[str]) -> None:
    out = list(wrapped(lines, "      "))
    assert all(len(line) <= WIDTH or " " not in line.strip() for line in out)
    assert " ".join(out).split() == " ".join(lines).split()


@pytest.mark.parametrize(
    ("scope", "value", "words"),
    [
        ("SystemMemory", 200626610.0, "191.3 MiB"),
        ("resource.katalyst.kubewharf.io/reclaimed_memory", 2.0 * GIB, "2.0 GiB"),
        ("resource.katalyst.kubewharf.io/reclaimed_millicpu", 36_000.0, "36.00 cores"),
        ("cpu.usage.container", 0.85, "85 %"),
        ("cpu.load.1min.container", 64.8, "64.8"),
        ("NICHealth", 90.0, "90 s"),
        ("another", 1234.5, "1234"),
        ("SystemMemory", None, "-"),
        ("SystemMemory", float("inf"), "inf"),
    ],
)
def test_an_amount_is_in_the_unit_of_its_scope(scope: str, value: float | None, words: str) -> None:
    assert amount(scope, value) == words
