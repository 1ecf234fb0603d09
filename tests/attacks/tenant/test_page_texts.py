"""A tenant names a pod, a node or a message so that a page of ours would run it: it stays a text."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from sublet.demo.report import DemoRun
from sublet.demo.report import page as demo_page
from sublet.demo.verdict import DemoClaim
from sublet.replay.batch import BatchRules
from sublet.replay.judging.total import Curve, ReplayOutcome, ReplayRow
from sublet.replay.report.page import page as replay_page
from sublet.replay.report.table import document
from sublet.replay.score import Score
from sublet.replay.traces.frames import Faults

NAMES = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "--><script>alert(1)</script><!--",
    "</title></style><svg onload=alert(1)>",
]


class Elements(HTMLParser):
    """Every element of a page with the names of its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attrs]))


def demo_of(text: str) -> str:
    """The demo's page with the text in a claim, a disturbance and the messages of an eviction."""
    chain = [{"at_s": 0.0, "message": text, "data": {"message": text, "detail": text, "plugin": text, "scope": text}}]
    return demo_page(
        DemoRun(
            claims=[DemoClaim(text, "failed", text)], disturbed=[text], readings={}, figures={}, curves=[], cpus=2,
            before_s=7.0, after_s=9.0, spike_to_cpuset_s=None, breach_to_call_s=None, chain=chain,
        )
    )  # fmt: skip


def replay_of(text: str) -> str:
    """The page of a replay whose file, node and policy are called so."""
    curve = Curve()
    for second in range(1, 4):
        curve.at_s.append(float(second))
        curve.wanted_cores.append(3.0)
        curve.room_cores.append(2.0)
        curve.offered_cores.append(1.0)
        curve.violated.append(True)
    score = Score(machine_core_s=10.0, tenants_core_s=9.0, node_s=3.0, offered_core_s=3.0, violation_core_s=3.0)
    outcome = ReplayOutcome((ReplayRow(text, score, curve),), score, (text,), 3, 3.0, 3.0, text, 4, Faults(), (text,))
    return replay_page(outcome, document(outcome, [text], BatchRules(2.0, 60.0)))


@pytest.mark.parametrize("page", [demo_of, replay_of])
@pytest.mark.parametrize("name", NAMES)
def test_a_name_adds_no_element_and_no_attribute(name: str, page: Callable[[str], str]) -> None:
    assert Elements(page(name)).found == Elements(page("plain")).found


@pytest.mark.parametrize("page", [demo_of, replay_of])
def test_were_one_to_slip_through_the_pages_policy_would_not_run_it(page: Callable[[str], str]) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page("plain"))
    assert policy is not None
    assert "script-src &#39;sha256-" in policy[1]
    assert "unsafe-inline" not in policy[1].split("script-src")[1]
