"""Differences between two configurations: for people as a text diff, for machines by key, and what is lost."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A configuration that is in force, and the one that is to be."""

    before: Document
    after: Document

    @property
    def empty(self) -> bool:
        """Whether nothing changes."""
        return _same(self.before, self.after)

    @property
    def lost_sections(self) -> list[str]:
        """Sections of which nothing is left."""
        return sorted(name for name, section in self.before.items() if section and not self.after.get(name))

    @property
    def needs_consent(self) -> bool:
        """Whether it takes away what somebody has set: all of it, or whole sections."""
        return bool(self.lost_sections) or not self.after

    def text(self, before_name: str, after_name: str) -> str:
        """A unified diff of both as YAML with sorted keys; "" where nothing changes."""
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), before_name, after_name, lineterm="")
        return "\n".join(lines)

    def rows(self) -> list[dict[str, Any]]:
        """Each key whose value changes, with both values; a value that is not there is left out."""
        before, after = dict(_leaves(self.before)), dict(_leaves(self.after))
        rows = []
        for path in sorted(before.keys() | after.keys()):
            if path in before and path in after and _same(before[path], after[path]):
                continue
            row = {"key": ".".join(path)}
            rows.append(row | {side: at[path] for side, at in (("before", before), ("after", after)) if path in at})
        return rows


def _same(one: Any, other: Any) -> bool:
    """Compared as they travel, where 1, 1.0 and true are three values."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _lines(document: Document) -> list[str]:
    return as_text(document).splitlines() if document else []


def as_text(document: Document) -> str:
    """A configuration as it is shown, and as a rollback writes it."""
    return yaml.safe_dump(dict(document), sort_keys=True)


def _leaves(document: Document, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in document.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key)), value
