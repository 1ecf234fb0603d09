"""The pods of several files and folders, as `-f` names them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from shared.errors import Refused
from sublet.pods.applying import PlacedDocument, read_documents

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MAX_FILES = 1000
STDIN = "-"


def read_files(names: Sequence[str], *, recursive: bool) -> list[PlacedDocument]:
    """The documents of all files, in the order in which they are named; those of a folder by name.

    Raises:
        Refused: a file cannot be read, a folder has none, or none says anything.
    """
    read = (read_documents(path) for name in names for path in _files(name, recursive=recursive))
    found = [document for documents in read for one in documents for document in _unpacked(one)]
    if all(one.value is None for one in found):
        raise Refused(f"{', '.join(names)}: no document found: want at least one with kind: Pod", reason="malformed")
    return found


def _unpacked(one: PlacedDocument) -> list[PlacedDocument]:
    """The items of a List, as `sublet get pods -o yaml` prints it; another document is itself."""
    document = one.value
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return [PlacedDocument(item, f"{one.place}, item {n}") for n, item in enumerate(document["items"], 1)]
    return [one]


def _files(name: str, *, recursive: bool) -> Iterator[str]:
    if name == STDIN:
        yield name
        return
    if not name:
        raise Refused("--filename '': want a file, a folder, or - for standard input", reason="option")
    if "://" in name:
        raise Refused(f"--filename {name}: want a file or folder of this host; fetch it first", reason="option")
    folder = Path(name)
    if not folder.is_dir():
        yield name
        return
    pattern = "**/*" if recursive else "*"
    found = sorted(path for path in folder.glob(pattern) if path.suffix in SUFFIXES and path.is_file())
    if not 1 <= len(found) <= MAX_FILES:
        ends = ", ".join(sorted(SUFFIXES))
        more = "" if recursive else "; -R looks into its folders"
        raise Refused(
            f"--filename {name}: {len(found)} files that end with {ends}: want 1 to {MAX_FILES}{more}", reason="option"
        )
    yield from map(str, found)
