"""The page of the chart's values has each of them, with its default."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import chart_values
import yaml

ROOT = Path(__file__).parents[3]
LISTED = chart_values.read(ROOT)


def value_at(path: str) -> Any:
    value = yaml.safe_load((ROOT / "deploy/k8s/chart/values.yaml").read_text())
    for key in path.split("."):
        value = value[key]
    return value


def leaves(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield ".".join((*path, key))


def test_every_value_is_listed_once_by_itself_or_with_its_group() -> None:
    paths = [path for path, default, _ in LISTED if default]
    assert len(paths) == len(set(paths)) > 90
    for leaf in leaves(yaml.safe_load((ROOT / "deploy/k8s/chart/values.yaml").read_text())):
        assert any(leaf == path or leaf.startswith(f"{path}.") for path in paths), leaf


def test_every_default_is_the_charts() -> None:
    for path, default, _ in LISTED:
        if default:
            assert yaml.safe_load(default) == value_at(path), path


def test_a_comment_behind_a_value_counts_for_more_than_the_one_above() -> None:
    text = "# of both\na:\n  b: 1 # of b\n  c: x#y\n\n# of nobody\n\nd: {}\n"
    assert list(chart_values.chart_values(text)) == [("a", "", "of both"), ("a.b", "1", "of b"), ("d", "{}", "")]
