"""`WrongSetting` is one row of the table: what is typed, and what must be said of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class WrongSetting:
    """A command that cannot be used as it is typed."""

    name: str
    typed: str
    """The words behind `sublet`, as a shell reads them."""
    said: tuple[str, ...]
    """Words that standard error must have: object, key, value, bound, next step."""
    files: Mapping[str, str] = field(default_factory=dict)
    """By name, in the folder in which the command is typed."""
    env: Mapping[str, str] = field(default_factory=dict)
    code: int = 2


Row = tuple[str, str, tuple[str, ...]]


def configurations(rows: Iterable[Row]) -> list[WrongSetting]:
    """Rows of name, text of `c.yaml` and words: the text is checked as a configuration."""
    return [WrongSetting(name, "config validate -f c.yaml", said, {"c.yaml": text}) for name, text, said in rows]


def settings_files(rows: Iterable[Row]) -> list[WrongSetting]:
    """Rows of name, text of `s.yaml` and words: the text is the file of the settings."""
    env = {"SUBLET_CONFIG": "s.yaml"}
    return [WrongSetting(name, "config validate", said, {"s.yaml": text}, env) for name, text, said in rows]


def variables(rows: Iterable[tuple[str, str, tuple[str, ...]]]) -> list[WrongSetting]:
    """Rows of variable, value and words; that the variable is named goes without saying."""
    return [
        WrongSetting(f"{name}={value[:30]}", "config validate", (name, *said), env={name: value})
        for name, value, said in rows
    ]
