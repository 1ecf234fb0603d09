"""The pods of several files and folders, as `-f` names them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from shared.errors import Refused
from sublet.pods.applying import read_documents

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MAX_FILES = 1000
STDIN = "-"


def read_files(names: Sequence[str], *, recursive: bool) -> list[object]:
    """The documents of all files, in the order in which they are named; those of a folder by name.

    Raises:
        Refused: a file cannot be read, or a folder has none.
    """
    read = (read_documents(path) for name in names for path in _files(name, recursive=recursive))
    return [document for documents in read for one in documents for document in _unpacked(one)]


def _unpacked(document: object) -> list[object]:
    """The items of a List, as `sublet get pods -o yaml` prints it; another document is itself."""
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]


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
