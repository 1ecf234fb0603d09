"""`sublet config`: what would change, what is taken away, what a key means, and the schema for editors."""

import json
import sys
from typing import Any

import jsonschema
import pytest
import yaml
from wrong_inputs import application, attempt, row
from wrong_settings.configurations import VALUES
from wrong_settings.wrong_setting import WrongSetting

from shared.errors import Refused
from shared.ports import Received
from sublet.configuration.difference import Difference
from sublet.configuration.publishing import Wanted, require_consent
from sublet.configuration.revisions import Revision, find_revision, read_revisions
from sublet.settings_page.schema import document_schema

OLD = {"qrm": {"mode": "observe", "offload": {"enabled": True}}, "reporter": {"refresh_s": 5}}


@pytest.mark.parametrize(
    ("after", "rows"),
    [
        (OLD, []),
        ({**OLD, "reporter": {"refresh_s": 6}}, [{"key": "reporter.refresh_s", "before": 5, "after": 6}]),
        ({**OLD, "reporter": {"refresh_s": 5.0}}, [{"key": "reporter.refresh_s", "before": 5, "after": 5.0}]),
        ({**OLD, "mode": "observe"}, [{"key": "mode", "after": "observe"}]),
        ({"qrm": OLD["qrm"]}, [{"key": "reporter.refresh_s", "before": 5}]),
    ],
    ids=["the same", "a value", "of another kind", "a key more", "a section less"],
)
def test_each_key_that_changes_is_named_with_both_values(after: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    difference = Difference(OLD, after)
    assert difference.rows() == rows
    assert difference.empty == (not rows)
    assert bool(difference.text("a", "b")) == bool(rows)


@pytest.mark.parametrize(
    ("before", "after", "asks"),
    [
        (OLD, {}, True),
        ({}, {}, True),
        (OLD, {"qrm": OLD["qrm"]}, True),
        (OLD, {"qrm": {}, "reporter": {"refresh_s": 5}}, True),
        (OLD, {"qrm": {"mode": "enforce"}, "reporter": {"refresh_s": 1}}, False),
        ({}, OLD, False),
    ],
    ids=["all", "nothing of nothing", "a section", "what is in a section", "values only", "a first one"],
)
def test_what_is_taken_away_is_asked_for(before: dict[str, Any], after: dict[str, Any], asks: bool) -> None:
    assert Difference(before, after).needs_consent == asks


def test_without_a_terminal_it_is_refused_and_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(Refused, match="removes the sections qrm, reporter: say --yes"):
        require_consent(Difference(OLD, {}), "revision 3", Wanted("", {}, "c.yaml"))
    assert "-  mode: observe" in capsys.readouterr().err
    require_consent(Difference(OLD, {}), "revision 3", Wanted("", {}, "c.yaml", yes=True))


class History:
    """A bus that has only a history."""

    async def replay(self, stream: str, subject: str) -> list[Received]:
        assert (stream, subject) == ("KV_sublet-config", "$KV.sublet-config.global")
        headers = {"Sublet-At": "2026-01-01T00:00:00+00:00", "Sublet-By": "central/a \x1b[31m" + "x" * 999}
        return [Received(subject, b'{"qrm": {}}', headers, 3), Received(subject, b"[" * 100_000, {}, 5)]


async def test_revisions_are_read_whatever_is_in_the_bucket() -> None:
    first, second = await read_revisions(History())  # type: ignore[arg-type]
    assert (first.number, first.document, first.at) == (3, {"qrm": {}}, "2026-01-01T00:00:00+00:00")
    assert first.by.startswith("central/a \\x1b[31m")
    assert len(first.by) == 200
    assert (second.number, second.document) == (5, None)


@pytest.mark.parametrize(("number", "words"), [(4, "kept are: 3, 5"), (5, "no configuration that can be read")])
def test_a_revision_that_cannot_be_had_is_refused(number: int, words: str) -> None:
    with pytest.raises(Refused, match=words):
        find_revision([Revision(3, {}), Revision(5, None)], number)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("advisor.reserve_cores", ("auto or number from 0 to 1000000", "cores", "SUBLET_ADVISOR__RESERVE_CORES")),
        ("SUBLET_ADVISOR__RESERVE_CORES", ("advisor.reserve_cores\n",)),
        ("mode", ("mode\n", "observe, enforce")),
        ("evictor.budgets", ("evictor.budgets.node",)),
        ("all", ("http_port",)),
    ],
)
def test_a_key_is_explained(key: str, words: tuple[str, ...]) -> None:
    answer = attempt(application(), row(f"config explain {key}", 0, ""))
    assert (answer.code, answer.err) == (0, "")
    assert [word for word in words if word not in answer.out] == []
    machine = json.loads(attempt(application(), row(f"config explain {key} -o json", 0, "")).out)
    assert {"key", "default", "bounds", "unit", "sentence"} <= machine[0].keys()


def test_an_unknown_key_is_refused_with_the_one_that_was_meant() -> None:
    answer = attempt(application(), row("config explain qrm.mod", 1, ""))
    assert (answer.code, answer.out) == (1, "")
    assert "no setting 'qrm.mod'; did you mean 'qrm.mode'?" in answer.err


def test_the_schema_takes_what_is_right() -> None:
    schema = document_schema("configuration")
    jsonschema.Draft202012Validator.check_schema(schema)
    advisor = {"reserve_cores": "auto", "policies": {"mine": {"x": 1}}}
    jsonschema.Draft202012Validator(schema).validate({**OLD, "mode": "observe", "advisor": advisor})
    settings = jsonschema.Draft202012Validator(document_schema("settings"))
    settings.validate({"http_port": 9000, "qrm": {"mode": "observe"}})
    assert not settings.is_valid({"http_prt": 9000})


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case.name)
def test_the_schema_refuses_what_the_models_refuse(case: WrongSetting) -> None:
    """But for names that only the machine knows: policies and plugins may be of a wheel."""
    document = yaml.safe_load(case.files["c.yaml"])
    validator = jsonschema.Draft202012Validator(document_schema("configuration"))
    of_wheels = {"a policy", "plugins", "settings of no policy", "a plugin by a number"}
    assert validator.is_valid(document) == (case.name in of_wheels)
