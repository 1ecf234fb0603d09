"""`sublet config explain`: the same sentences, bounds and units as the page of all settings."""

from dataclasses import asdict
from typing import Any

from shared.core.text.did_you_mean import did_you_mean
from shared.errors import Refused
from shared.settings import PREFIX
from sublet.exit_codes import NO_SUCH_OBJECT
from sublet.settings_page.page import SettingRow, rows
from sublet.settings_page.sections import Section, sections

ALL = ("", "all")


def explain_key(key: str) -> tuple[str, list[SettingRow]]:
    """A sentence, and the rows of a key: its own, or those below a section. A variable is a key, too.

    Raises:
        Refused: there is no such key.
    """
    wanted = _key_of(key)
    titles, below = _all_sections()
    if wanted in titles:
        return titles[wanted].about, below[wanted]
    found = {row.key: row for listed in below.values() for row in listed}
    if wanted not in found:
        meant = did_you_mean(
            wanted, [*found, *filter(None, titles)], otherwise="all of them: sublet config explain all"
        )
        raise Refused(f"no setting {key!r}; {meant}", reason=NO_SUCH_OBJECT)
    return "", [found[wanted]]


def setting_keys() -> list[str]:
    """Every key that `explain_key` knows, those of sections too."""
    titles, below = _all_sections()
    return [*filter(None, titles), *ALL[1:], *(row.key for listed in below.values() for row in listed)]


def explained(about: str, found: list[SettingRow]) -> str:
    """For people: one key whole, or a line for each key of a section."""
    if not about and len(found) == 1:
        return _one(found[0])
    width = max((len(row.key) for row in found), default=0)
    lines = [f"{row.key:<{width}}   {row.bounds}{f' ({row.unit})' if row.unit else ''}" for row in found]
    return "\n".join([about, "", *lines])


def documents(found: list[SettingRow]) -> list[dict[str, Any]]:
    """For machines."""
    return [asdict(row) for row in found]


def _all_sections() -> tuple[dict[str, Section], dict[str, list[SettingRow]]]:
    """Every section by its key, and the rows of each."""
    found = {".".join(section.path): section for section in sections()}
    return found, {key: [_plain(row, section) for row in rows(section)] for key, section in found.items()}


def _key_of(key: str) -> str:
    if key.startswith(PREFIX):
        return key.removeprefix(PREFIX).lower().replace("__", ".")
    return "" if key in ALL else key


def _plain(row: SettingRow, section: Section) -> SettingRow:
    """With the whole key, and without the marks of the page."""
    bounds = "the keys below it" if row.bounds.startswith("the keys of [") else row.bounds.replace("`", "")
    key = ".".join((*section.path, row.key))
    return SettingRow(key, row.variable, row.default.replace("`", ""), bounds, row.unit, row.sentence.replace("`", ""))


def _one(row: SettingRow) -> str:
    lines = [row.key, f"  {row.sentence}", f"  may be:   {row.bounds}"]
    lines += [f"  unit:     {row.unit}"] if row.unit else []
    lines += [f"  default:  {row.default}"] if row.default else []
    lines += [f"  variable: {row.variable}"] if row.variable else []
    return "\n".join(lines)
