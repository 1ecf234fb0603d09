"""The chart's values as a table, from values.yaml: what stands behind a value, or above it, is its meaning."""

import re
from collections.abc import Iterator
from pathlib import Path

LINE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]\w*):(?: (?P<value>[^#]*?))?(?: *# (?P<meaning>.*))?$")


def chart_values(text: str) -> Iterator[tuple[str, str, str]]:
    """Path, default and meaning of each value and of each group that has a meaning, in the file's order."""
    path: list[tuple[int, str]] = []
    above: list[str] = []
    for line in text.splitlines():
        if line.strip().startswith("# "):
            above.append(line.strip().removeprefix("# "))
        elif not line.strip():
            above = []
        elif found := LINE.match(line):
            indent = len(found["indent"])
            path = [*((depth, key) for depth, key in path if depth < indent), (indent, found["key"])]
            meaning = found["meaning"] or " ".join(above)
            above = []
            if found["value"] or meaning:
                yield ".".join(key for _, key in path), (found["value"] or "").strip(), meaning
        elif line.strip().startswith("- "):
            yield ".".join(key for _, key in path), f"[{line.strip().removeprefix('- ')}]", ""


def read(root: Path) -> list[tuple[str, str, str]]:
    """The values of the chart of this checkout."""
    return list(chart_values((root / "deploy/k8s/chart/values.yaml").read_text()))
