"""`validate_settings` and `validate_config` report everything that is wrong with a user's input, and where."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.config import MAX_TEXT_BYTES, config_of, read_config_text
from shared.contracts.services import SERVICES
from shared.errors import BadConfig, Refused, SettingProblem
from shared.settings import common_settings
from sublet.terminal.given_file import read_given_text
from sublet.validation.given import Given
from sublet.validation.sections import BUILDERS
from sublet.validation.together import problems_together

NEXT_STEP = "what each key may be: sublet config explain KEY"


@dataclass(frozen=True, slots=True)
class SettingFinding:
    """One thing that is wrong: where it stands, with which key, and what is wanted."""

    place: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a validation has found."""

    findings: tuple[SettingFinding, ...] = ()
    notes: tuple[str, ...] = ()
    """What keeps nobody from starting, and still is wrong."""

    def require_valid(self) -> None:
        """Refuse what has findings.

        Raises:
            BadConfig: names all of them.
        """
        if self.findings:
            raise BadConfig("; ".join([*map(str, self.findings), NEXT_STEP]), reason="invalid")


def validate_settings(given: Given) -> Verdict:
    """Build all that the services of this node and central build at their start."""
    try:
        values = given.values
    except BadConfig as error:
        return Verdict(tuple(_findings(given, error)))
    findings: list[SettingFinding] = []
    try:
        common_settings(values)
    except BadConfig as error:
        findings += _findings(given, error)
    sections = _build_sections(given, values)
    return Verdict((*findings, *sections.findings), sections.notes)


def validate_config(file: str, settings: Given) -> tuple[dict[str, Any], Verdict]:
    """The configuration of a file, and what the services would say of it over these settings."""
    try:
        text = read_given_text(file, what="configuration file", max_bytes=MAX_TEXT_BYTES)
    except Refused as refusal:
        return {}, Verdict((SettingFinding("", "", str(refusal)),))
    return validate_config_text(text, file, settings)


def validate_config_text(text: str, name: str, settings: Given) -> tuple[dict[str, Any], Verdict]:
    """The same of a text; `name` says where it is from."""
    given = settings
    try:
        given = Given(read_config_text(text, what=name), name, base=settings)
        document = config_of(given.document.value, known=SERVICES)
        return document, _build_sections(given, given.values)
    except BadConfig as error:
        return {}, Verdict(tuple(_findings(given, error)))


def _build_sections(given: Given, values: Mapping[str, Any]) -> Verdict:
    findings: list[SettingFinding] = []
    notes: list[str] = []
    for name, build in BUILDERS.items():
        try:
            notes += build(values.get(name) or {})
        except BadConfig as error:
            findings += _findings(given, error)
        except (ValueError, TypeError) as error:  # a rule that refuses what its model lets through
            findings.append(SettingFinding(given.place_of((name,)), name, f"{name}: {error}"))
    findings += _problems(given, problems_together(values))
    return Verdict(tuple(findings), tuple(notes))


def _findings(given: Given, error: BadConfig) -> Iterator[SettingFinding]:
    if not error.problems:
        yield SettingFinding("", "", str(error))
    yield from _problems(given, error.problems)


def _problems(given: Given, problems: Iterable[SettingProblem]) -> Iterator[SettingFinding]:
    for problem in problems:
        yield SettingFinding(given.place_of(problem.path), problem.key, str(problem))
