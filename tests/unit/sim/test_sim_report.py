"""The report: expectations against what was seen, the table, the JSON."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.contracts.eviction import EvictionEvent
from shared.contracts.eviction_phases import Phase
from sublet.sim.report import Report, ReportRow, SimView, as_document, as_table, differences
from sublet.sim.scenario import Expect

VIEW = SimView(share="11,35", reclaim="0-10", reclaimed_millicpu=42_000, reclaimed_memory=7, pods=("default/web",))


def event(phase: Phase, pod: str = "batch", message: str = "because") -> EvictionEvent:
    return EvictionEvent(
        node="sim", boot_id="0123456789ab", seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC),
        intent_id="00000000-0000-0000-0000-000000000000", namespace="default", pod=pod, pod_uid="1a",
        qos="reclaimed_cores", plugin="p", scope="s", phase=phase, message=message,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("expect", "problems"),
    [
        pytest.param({}, [], id="nothing expected"),
        pytest.param({"reclaimed_millicpu": "42k", "share": "11,35", "pods": ["web"]}, [], id="all true"),
        pytest.param({"reclaimed_millicpu": "44k"}, ["reclaimed_millicpu is 42000, expected 44000"], id="an amount"),
        pytest.param({"reclaim": "0-9"}, ["reclaim is 0-10, expected 0-9"], id="another cpuset"),
        pytest.param({"pods": []}, ["running pods are default/web, expected none"], id="a pod too many"),
        pytest.param({"evictions": 0}, ["1 evictions begun, expected 0"], id="an eviction too many"),
        pytest.param({"events": [{"phase": "created", "pod": "batch"}]}, [], id="the event is there"),
        pytest.param({"events": [{"phase": "created", "pod": "batch", "message": "because"}]}, [], id="with its text"),
        pytest.param({"events": [{"phase": "created", "pod": "batch", "message": "so"}]},
                     ["no event created of default/batch with the text 'so'"], id="another text"),
        pytest.param({"events": [{"phase": "succeeded", "pod": "batch"}]},
                     ["no event succeeded of default/batch"], id="another phase"),
    ],
)  # fmt: skip
def test_what_is_not_as_expected_is_said_in_words(expect: dict[str, Any], problems: list[str]) -> None:
    assert list(differences(Expect.model_validate(expect), VIEW, [event("created")])) == problems


def test_what_was_never_reported_is_not_zero() -> None:
    assert list(differences(Expect(reclaimed_millicpu=0), SimView(), [])) == [
        "reclaimed_millicpu is not reported, expected 0"
    ]


def report(*problems: str) -> Report:
    rows = [
        ReportRow(t_s=0, what="idle", view=SimView()),
        ReportRow(t_s=60, what="apply web", view=VIEW),
        ReportRow(t_s=61, what="created pod/batch  " + "a long text " * 20, view=VIEW, event=True),
    ]
    return Report(scenario="story", about="what it shows", rows=rows, checks=3, problems=list(problems))


def test_the_table_aligns_its_columns_and_lets_event_texts_run_on() -> None:
    lines = as_table(report()).splitlines()
    assert lines[0] == "story: what it shows"
    assert lines[2:5] == [
        "TIME   WHAT HAPPENED   SHARE CPUSET   RECLAIM CPUSET   RECLAIMED_MILLICPU",
        " 0 s   idle",
        "60 s   apply web       11,35          0-10             42k",
    ]
    assert lines[5].startswith("61 s   created pod/batch  a long text")
    assert lines[-1] == "everything happened as the scenario says: 3 expectations came true"


def test_a_problem_is_printed_and_the_report_is_not_ok() -> None:
    failed = report("at 9 s: share is 1, expected 2")
    assert "NOT AS EXPECTED: at 9 s: share is 1, expected 2" in as_table(failed)
    assert (failed.ok, report().ok) == (False, True)


def test_the_json_form_says_the_same() -> None:
    document = json.loads(json.dumps(as_document(report())))
    assert document["ok"] is True
    assert document["rows"][1]["view"]["reclaimed_millicpu"] == 42_000
