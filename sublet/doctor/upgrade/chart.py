"""The chart of an upgrade: its version, kinds, values and their schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.core.text.json_text import read_json_object
from shared.errors import Refused
from shared.text_file import MAX_FILE_BYTES, read_text, read_yaml_file

Document = Mapping[str, Any]
MOST_KINDS = 100
KIND = "CustomResourceDefinition"


@dataclass(frozen=True, slots=True)
class UpgradeChart:
    """A chart as it lies in a folder."""

    folder: str
    version: str
    kinds: Mapping[str, Document]
    """CustomResourceDefinitions by their names."""
    values: Document
    """Its defaults."""
    schema: Document
    """What values may be, as JSON Schema."""


def read_chart(folder: Path) -> UpgradeChart:
    """The chart in a folder.

    Raises:
        Refused: a file of it is missing, too large or malformed, or it has more kinds than a chart of Sublet's can.
    """
    files = sorted((folder / "crds").glob("*.yaml"))[: MOST_KINDS + 1]
    if len(files) > MOST_KINDS:
        raise Refused(f"chart {folder}: more than {MOST_KINDS} files in crds; is it Sublet's?", reason="too_large")
    documents = (_mapping(path) for path in files)
    kinds = {_name(one, folder): one for one in documents if one.get("kind") == KIND}
    schema = read_text(folder / "values.schema.json", what="values schema", max_bytes=MAX_FILE_BYTES)
    return UpgradeChart(
        folder=str(folder),
        version=str(_mapping(folder / "Chart.yaml").get("version", "")),
        kinds=kinds,
        values=_mapping(folder / "values.yaml"),
        schema=read_json_object(schema, what="values schema", max_bytes=MAX_FILE_BYTES),
    )


def _mapping(path: Path) -> dict[str, Any]:
    found = read_yaml_file(path, what="file of the chart").value
    if not isinstance(found, dict):
        raise Refused(f"file of the chart {path}: want a mapping, got {type(found).__name__}", reason="malformed")
    return found


def _name(kind: Document, folder: Path) -> str:
    name = (kind.get("metadata") or {}).get("name") if isinstance(kind.get("metadata"), dict) else None
    if not isinstance(name, str) or not isinstance(kind.get("spec"), dict):
        raise Refused(f"chart {folder}: a kind without metadata.name or spec", reason="malformed")
    return name
