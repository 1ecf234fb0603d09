"""YAML from outside, as the values that it says: bounded before it is read, no key twice, and one error for all faults.

The parser itself takes the last of two equal keys, and gives up on deep nesting with an error of another kind.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from shared.errors import Refused

MAX_DEPTH = 32
MAX_VALUES = 50_000
"""Values of one text, those of an alias counted at each place where it stands."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a text, and the line on which each of its keys stands."""

    value: Any
    lines: Mapping[Path, int]

    def line_of(self, path: Path) -> int | None:
        """The line of a key, else of the nearest one above it; None where there is none."""
        return next((self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), None)


def read_yaml(text: str, *, what: str, max_bytes: int) -> YamlDocument:
    """The one document of a text that somebody else wrote; an empty text says None.

    Raises:
        Refused: as `read_yaml_documents`, or there are several documents.
    """
    found = read_yaml_documents(text, what=what, max_bytes=max_bytes)
    if len(found) > 1:
        raise Refused(f"{what}: {len(found)} documents, want one; remove the lines ---", reason="malformed")
    return found[0] if found else YamlDocument(None, {})


def read_yaml_documents(text: str, *, what: str, max_bytes: int) -> list[YamlDocument]:
    """All documents of a text; `what` names it in the error, which never quotes a value: it may be a password.

    Raises:
        Refused: larger than that, not YAML, nested too deep, too many values, or a key that stands twice.
    """
    if len(text) > max_bytes:
        raise Refused(f"{what}: {len(text)} bytes, at most {max_bytes} are read", reason="too_large")
    try:
        return list(_documents(text, what))
    except yaml.YAMLError as error:
        # `from None`: the parser's own message quotes the text.
        raise Refused(f"{what}: not YAML{_place(error)}", reason="malformed") from None
    except RecursionError:
        raise Refused(f"{what}: nested too deep, at most {MAX_DEPTH} levels are read", reason="malformed") from None
    except ValueError:  # a date that no calendar has, a number of thousands of digits
        raise Refused(f"{what}: not YAML: a date or a number cannot be read", reason="malformed") from None


def _documents(text: str, what: str) -> Iterator[YamlDocument]:
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            root = loader.get_node()
            walk = _Walk(what, loader)
            if root is None:
                continue
            walk.visit(root, ())
            yield YamlDocument(loader.construct_document(root), walk.lines)
    finally:
        loader.dispose()


@dataclass
class _Walk:
    """Goes over a document before anything is made of it."""

    what: str
    loader: yaml.SafeLoader
    lines: dict[Path, int] = field(default_factory=dict)
    values: int = 0

    def visit(self, node: yaml.Node, path: Path) -> None:
        self.values += 1
        if len(path) > MAX_DEPTH:  # an alias of a value around itself ends here as well
            raise self._refused(node, f"nested too deep, at most {MAX_DEPTH} levels are read")
        if self.values > MAX_VALUES:
            raise self._refused(node, f"too many values, at most {MAX_VALUES} are read")
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            self._visit_mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            for place, item in enumerate(node.value):
                self.visit(item, (*path, str(place)))

    def _visit_mapping(self, node: yaml.MappingNode, path: Path) -> None:
        seen: dict[Hashable, int] = {}
        for key, value in node.value:
            name = self._name(key)
            line = key.start_mark.line + 1
            if name in seen:
                raise self._refused(key, f"key {name!r} stands twice, first in line {seen[name]}; remove one")
            seen[name] = line
            self.lines.setdefault((*path, str(name)), line)
            self.visit(value, (*path, str(name)))

    def _name(self, key: yaml.Node) -> Hashable:
        if not isinstance(key, yaml.ScalarNode):
            raise self._refused(key, "a key is a list or a mapping; want text")
        if key.tag == "tag:yaml.org,2002:merge":
            return str(key.value)
        name: Hashable = self.loader.construct_object(key)
        return name

    def _refused(self, node: yaml.Node, why: str) -> Refused:
        return Refused(f"{self.what}, line {node.start_mark.line + 1}: {why}", reason="malformed")


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
