"""A cluster's objects from a user's files: read with bounds, without trust in their shape."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.core.text.yaml_text import read_yaml_documents
from shared.errors import Refused
from shared.text_file import os_reason
from sublet.terminal.given_file import STDIN, read_given_text

MAX_FILES = 500
MAX_OBJECTS = 5000
MAX_DEPTH = 4
"""Levels of lists in lists."""
SUFFIXES = (".yaml", ".yml", ".json")
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterObject:
    """One object, by its kind and name."""

    kind: str
    name: str
    document: Document
    namespace: str = ""

    @property
    def title(self) -> str:
        """As commands write it."""
        return f"{self.kind}/{self.name}"


def read_objects(names: Sequence[str]) -> list[ClusterObject]:
    """The objects of files, folders (their YAML and JSON files) and standard input ("-").

    Raises:
        Refused: a file cannot be read or is not YAML, there are too many, or there is no object at all.
    """
    found = [one for name in names for file in _files(name) for one in _of_file(file)]
    if not found:
        raise Refused(f"{', '.join(names)}: no object of Kubernetes; want YAML as `kubectl get … -o yaml` prints it",
                      reason="shape")  # fmt: skip
    return found


def _files(name: str) -> list[str]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return [name]
    try:
        files = sorted(str(file) for file in path.iterdir() if file.suffix in SUFFIXES)
    except OSError as error:
        raise Refused(f"--filename {name}: {os_reason(error)}", reason="unreadable") from error
    if not files:
        raise Refused(f"--filename {name}: no file that ends in {' or '.join(SUFFIXES)}", reason="shape")
    if len(files) > MAX_FILES:
        raise Refused(f"--filename {name}: {len(files)} files, at most {MAX_FILES} are read", reason="too_large")
    return files


def _of_file(name: str) -> list[ClusterObject]:
    text = read_given_text(name, what="objects in")
    documents = read_yaml_documents(text, what=name, max_bytes=len(text))
    return objects_of([one.value for one in documents], name)


def objects_of(documents: Iterable[object], place: str) -> list[ClusterObject]:
    """The objects among documents, those of lists one by one; what is no object is passed over.

    Raises:
        Refused: there are too many.
    """
    found: list[ClusterObject] = []
    for document in documents:
        for one in _flat(document, MAX_DEPTH):
            if len(found) == MAX_OBJECTS:
                raise Refused(f"{place}: more than {MAX_OBJECTS} objects; name a part of them", reason="too_large")
            found.append(one)
    return found


def _flat(document: object, levels: int) -> Iterator[ClusterObject]:
    if not isinstance(document, Mapping) or levels == 0:
        return
    kind, items = document.get("kind"), document.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for item in items:
            # Items of the API server's own lists carry no kind.
            named = {"kind": kind.removesuffix("List"), **item} if isinstance(item, Mapping) else item
            yield from _flat(named, levels - 1)
        return
    words = words_of(document, "metadata")
    if isinstance(kind, str) and words.get("name"):
        yield ClusterObject(kind, words["name"], document, words.get("namespace", ""))


def part_of(document: object, *names: str) -> Document:
    """The mapping below these names; empty where there is none."""
    here = document
    for name in names:
        here = here.get(name) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}


def rows_of(document: object, name: str) -> list[Document]:
    """The mappings of a list; empty where there is none."""
    rows = document.get(name) if isinstance(document, Mapping) else None
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def words_of(document: object, *names: str) -> dict[str, str]:
    """The texts of a mapping of texts, as labels are."""
    found: Mapping[Any, object] = part_of(document, *names)  # YAML has keys that are no text
    return {key: value for key, value in found.items() if isinstance(key, str) and isinstance(value, str)}
