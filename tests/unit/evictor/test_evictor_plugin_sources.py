"""Every built-in plugin sees its pressure in what the metrics service really measures, and nothing without it.

A plugin and a source that call a figure differently would be right each by itself, and blind together.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from plugin_world import PLUGINS, settings_of, shown
from sampled_tree import samples, views

from services.evictor.core.plugin import Pressure, View, checked_ranking
from services.metrics.registry import known_sources

NEEDS = {
    "cpu_load": ("task_load",),
    "cpu_satisfaction": ("cpu_usage",),
    "cpu_suppression": ("cpus", "cpu_usage"),
    "memory_pressure": ("node_memory",),
    "memory_usage": ("node_memory",),
    "network_interface": ("nic",),
    "numa_cpu_pressure": ("cpu_usage", "numa"),
    "numa_memory_pressure": ("numa",),
    "numa_sys_cpu_pressure": ("cpu_sys", "cpu_usage", "numa"),
    "rootfs_pressure": ("rootfs",),
    "rss_overuse": ("memory_stat",),
    "system_memory_pressure": ("node_memory",),
    "template": ("node_memory",),
}
"""Sources each of which alone a plugin cannot do without."""
BY_OFFER = ("reclaimed_allocatable", "reclaimed_overcommit", "reclaimed_numa_overcommit")
"""Plugins that look at no measured figure."""
NO_SOURCE = ("rootfs_overuse",)
"""Nobody measures on a host what a container has written: see `services/metrics/sources/rootfs.py`."""
NOBODY = ("rootfs_pressure",)
"""It sees the pressure and sets its condition, but does not know who has written most."""
PAIRS = [(section, source) for section, sources in NEEDS.items() for source in sources]
MISSING = sorted({source for _, source in PAIRS})
SEEING = [section for section in PLUGINS if section not in NO_SOURCE]


@pytest.fixture(scope="module", params=[1, 2], ids=["cgroup v1", "cgroup v2"])
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Samples of minutes: calm, short of everything, and short of everything with one source missing."""
    calm, pressed = (tmp_path_factory.mktemp(name) for name in ("calm", "pressed"))
    (quiet,) = samples(calm, request.param, pressed=False)
    full, *missing = samples(pressed, request.param, pressed=True, without=[(), *((name,) for name in MISSING)])
    return {"calm": quiet, "pressed": full, **dict(zip(MISSING, missing, strict=True))}


def findings(section: str, row: Any, *, offered_millis: int = 1, **over: Any) -> tuple[list[Any], View]:
    seen = [replace(view, **over) for view in views(row, offered_millis=offered_millis)]
    return shown(PLUGINS[section], settings_of(section), seen), seen[-1]


def test_every_plugin_of_the_folder_is_in_one_of_the_tables() -> None:
    assert sorted((*NEEDS, *BY_OFFER, *NO_SOURCE)) == sorted(PLUGINS)
    assert set(MISSING) <= known_sources().keys()


def test_the_page_lists_every_plugin_with_its_name_its_sources_and_its_default() -> None:
    page = (Path(__file__).parents[3] / "docs/writing-an-eviction-plugin.md").read_text()
    table = page.split("## The built-in plugins")[1].split("## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:3] == "| `"]
    assert sorted(row[0].strip("`") for row in rows) == sorted(PLUGINS)
    for file, name, _, figures, default, setting in rows:
        plugin = PLUGINS[file.strip("`")]
        assert name == f"`{plugin.name}`"
        assert default.startswith("on:" if plugin.settings().enabled else "off:")
        assert all(f"`{source}`" in figures for source in NEEDS.get(file.strip("`"), ()))
        said = setting.split("`")[1].partition(":")
        assert said[0] in plugin.settings.model_fields
        if said[2]:
            plugin.settings.model_validate(yaml.safe_load("".join(said)))


@pytest.mark.parametrize("section", SEEING)
def test_it_sees_its_pressure_in_what_is_measured(section: str, rows: dict[str, Any]) -> None:
    (*_, last), view = findings(section, rows["pressed"])
    assert isinstance(last, Pressure), f"{last}: no source tells what it looks at, or by another name"
    ranking = checked_ranking(PLUGINS[section].rank(view, last, settings_of(section)), view)
    assert bool(ranking) is (section not in NOBODY)
    assert ranking or last.condition


@pytest.mark.parametrize("section", SEEING)
def test_it_is_calm_where_nothing_is_short(section: str, rows: dict[str, Any]) -> None:
    found, _ = findings(section, rows["calm"], offered_millis=10**6)
    assert found[-1] == "calm"
    assert not [finding for finding in found if isinstance(finding, Pressure)]


@pytest.mark.parametrize(("section", "source"), PAIRS)
def test_without_its_source_it_knows_nothing(section: str, source: str, rows: dict[str, Any]) -> None:
    found, _ = findings(section, rows[source])
    assert set(found) == {"unknown"}


@pytest.mark.parametrize("section", [*BY_OFFER, "cpu_load", "cpu_satisfaction", "cpu_suppression"])
def test_without_an_allocation_it_knows_nothing(section: str, rows: dict[str, Any]) -> None:
    found, _ = findings(section, rows["pressed"], reclaimed=None, reclaimed_by_numa=None, allocation=None)
    assert set(found) == {"unknown"}


@pytest.mark.parametrize("section", NO_SOURCE)
def test_a_plugin_that_nobody_measures_for_says_so_and_never_sees_pressure(section: str, rows: dict[str, Any]) -> None:
    assert set(findings(section, rows["pressed"])[0]) == {"unknown"}
    assert not [
        name
        for name, source in known_sources().items()
        if "rootfs_used_bytes" in {figure.name for figure in source.figures.get("container", ())}
    ], "now somebody does: into NEEDS with it"
