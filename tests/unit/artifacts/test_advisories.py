"""The audit by the list that is kept: what is known is found, and an old or short list never passes for a clean one."""

from datetime import date
from pathlib import Path

import pytest

from deploy.artifacts.checkout import ROOT
from deploy.audit.__main__ import CLEAN, FOUND, KEPT, MOST_AGE_DAYS, NOT_DONE, by_list, pinned
from deploy.audit.advisories import Advisory, Kept, Range, of_documents

TODAY = date(2026, 1, 31)


def osv(events: list[dict[str, str]], **more: object) -> dict[str, object]:
    """A document of the database about one package."""
    ranges = [{"type": "GIT", "events": [{"introduced": "0"}]}, {"type": "ECOSYSTEM", "events": events}]
    affected = {"package": {"name": "Some_Name", "ecosystem": "PyPI"}, "ranges": ranges, "versions": ["1.0"]}
    return {"id": "PYSEC-1", "aliases": ["CVE-1"], "affected": [affected], **more}


def kept(advisories: dict[str, tuple[Advisory, ...]], until: date = TODAY) -> Kept:
    return Kept(source="a list", license="CC-BY-4.0", revision="0" * 40, until=until, packages=advisories)


@pytest.mark.parametrize(
    ("events", "affected", "safe"),
    [
        ([{"introduced": "0"}, {"fixed": "2.1"}], ["0.1", "2.0.9", "2.1rc1"], ["2.1", "3"]),
        ([{"introduced": "1.5"}, {"last_affected": "2.1"}], ["1.5", "2.1"], ["1.4", "2.1.1"]),
        ([{"introduced": "3"}], ["3", "99"], ["2.9"]),
        ([{"introduced": "0"}, {"fixed": "1"}, {"introduced": "2"}, {"fixed": "2.2"}], ["0.5", "2.1"], ["1", "2.2"]),
    ],
)
def test_a_range_holds_the_versions_between_its_events(
    events: list[dict[str, str]], affected: list[str], safe: list[str]
) -> None:
    (advisory,) = of_documents([osv(events)], ["some-name"])["some-name"]
    assert [version for version in (*affected, *safe) if advisory.affects(version)] == affected


def test_versions_by_name_count_where_there_is_no_range_and_withdrawn_ones_do_not() -> None:
    (advisory,) = of_documents([osv([])], ["some-name"])["some-name"]
    assert (advisory.affects("1.0"), advisory.affects("1.1")) == (True, False)
    assert of_documents([osv([], withdrawn="2020-01-01")], ["some-name"]) == {"some-name": ()}
    assert of_documents([osv([])], ["other"]) == {"other": ()}


BAD = Advisory(id="PYSEC-1", aliases=("CVE-1",), ranges=(Range(introduced="0", fixed="2"),))


@pytest.mark.parametrize(
    ("advisories", "age_days", "code", "words"),
    [
        ({"a": ()}, MOST_AGE_DAYS, CLEAN, "nothing known"),
        ({"a": ()}, MOST_AGE_DAYS + 1, NOT_DONE, f"{MOST_AGE_DAYS + 1} days old, want {MOST_AGE_DAYS}"),
        ({"b": ()}, 0, NOT_DONE, "a: was not looked up"),
        ({"a": (BAD,)}, 0, FOUND, "a 1.9: PYSEC-1 CVE-1"),
        ({"a": (BAD,)}, 9999, FOUND, "a 1.9: PYSEC-1 CVE-1"),
    ],
)
def test_the_verdict_and_the_age_of_the_list_are_told(
    advisories: dict[str, tuple[Advisory, ...]], age_days: int, code: int, words: str
) -> None:
    until = date.fromordinal(TODAY.toordinal() - age_days)
    verdict, lines = by_list(kept(advisories, until), {"a": "1.9"}, TODAY)
    said = "\n".join(lines)
    assert (verdict, f"({age_days} days ago)" in said, "NOT DONE" in said) == (code, True, code == NOT_DONE)
    assert words in said


def test_the_list_that_is_kept_looked_every_package_up_and_knows_versions_that_were_mended() -> None:
    """A new package: python -m deploy.audit --update CLONE"""
    listed = Kept.model_validate_json(KEPT.read_text())
    everything = pinned(path.stem for path in (ROOT / "requirements").glob("*.txt"))
    assert listed.unknown(everything) == []
    assert listed.found({"jinja2": "2.11.2"}) != []
    assert Path(KEPT).stat().st_size < 100_000
