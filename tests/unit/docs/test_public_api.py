"""`sublet.api`: which names it has, and that examples, templates and guides import nothing else of Sublet."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet import api

ROOT = Path(__file__).parents[3]
OURS = ("services", "shared", "sublet")
NAMES = {
    "events": "EVENTS_STREAM MSG_ID EvictionEvent IntentId Phase event_filter event_headers event_subject intent_id",
    "field": "Allocation FieldSettings FieldView Fragment NodeReading NodeSample NumaReading Offered PoolReading "
    "ReportField ServiceHealth changed format_millis format_units parse_units plain",
    "plugin": "Allocation Candidate Container ContainerReading CpuSet NodeReading NodeSample NumaReading Plugin "
    "PluginSettings Pod PodReading PoolReading Pressure Reason Silence View",
    "policy": "CPU_TENANTS Bounds ContainerView Demand Figures NodeMemory Policy PolicySettings Reason Resident Signs "
    "View estimate_bytes requested_cores total_cores unknown_memory_bytes",
    "source": "GREW GROUPS WORKED Damped Gate Gauge Host Kind Moved Quotient Rate Ratio Source Target Total Value "
    "key_values meminfo_bytes",
}
"""Who takes a name away or gives it another meaning breaks wheels: docs/api.md says when that may be."""
PAGES = (
    "README.md",
    "docs/api.md",
    "docs/writing-a-policy.md",
    "docs/writing-an-eviction-plugin.md",
    "docs/writing-a-source.md",
    "docs/writing-a-field.md",
)
TEMPLATES = (
    "services/advisor/policies/template.py",
    "services/evictor/plugins/template.py",
    "services/metrics/sources/template.py",
    "services/reporter/fields/template.py",
)
EXAMPLES = tuple(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "examples").rglob("*.py")))


def imported(text: str) -> Iterator[str]:
    """Modules of ours that a text imports."""
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        yield from (name for name in names if name.partition(".")[0] in OURS)


def own_modules(blocks: list[str]) -> set[str]:
    """Modules that a page itself makes: the first line of a block names the file."""
    heads = [match[1] for block in blocks if (match := re.match(r"# (\S+)\.py\n", block))]
    return {head.replace("/", ".") for head in heads}


def beyond(text: str) -> list[str]:
    return [name for name in imported(text) if not name.startswith(f"{api.__name__}.")]


def test_there_is_a_module_for_each_kind() -> None:
    assert {module.name for module in pkgutil.iter_modules(api.__path__)} == NAMES.keys()
    assert list(imported((ROOT / "sublet/api/__init__.py").read_text())) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_public_names_are_these(name: str) -> None:
    module = importlib.import_module(f"{api.__name__}.{name}")
    assert list(module.__all__) == NAMES[name].split()
    assert [public for public in module.__all__ if not hasattr(module, public)] == []
    assert f"`{module.__name__}`" in (ROOT / "docs/api.md").read_text()


@pytest.mark.parametrize("path", [*TEMPLATES, *EXAMPLES])
def test_a_file_to_copy_imports_nothing_else_of_ours(path: str) -> None:
    assert beyond((ROOT / path).read_text()) == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_nothing_else_of_ours(path: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)
    assert {name for block in blocks for name in beyond(block)} <= own_modules(blocks)


def test_the_wheels_of_the_examples_do_import_from_it() -> None:
    wheels = [path for path in EXAMPLES if "-wheel/" in path]
    assert len(wheels) == 2
    assert all(list(imported((ROOT / path).read_text())) for path in wheels)


def test_what_is_imported_from_elsewhere_is_found() -> None:
    assert beyond(
        "import os\nimport shared.ports\nfrom services.evictor import core\nfrom sublet.api.plugin import View"
    ) == [
        "shared.ports",
        "services.evictor",
    ]
