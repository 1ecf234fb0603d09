"""Plugins of other wheels, and plugins whose code fails: named, and the others go on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from evictor_world import CPU_LOAD, GIB, LARGE, MEMORY, RECLAIMED, SMALL, TOTAL_BYTES, WEB, MakeNode, pod
from fixture_types import Virtual
from plugin_world import PLUGINS, bound, busy, pressed_views

from services.evictor.core.arbiter.choice import choose
from services.evictor.core.arbiter.confirmation import ConfirmationRules
from services.evictor.core.arbiter.guards import Surroundings
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure
from services.evictor.detectors import Detectors
from services.evictor.registry import GROUP
from services.evictor.settings import Configured, read
from shared import registry
from shared.contracts.envelope import Reason
from shared.contracts.sample import NodeReading
from shared.core.evictions.intents import Record
from shared.errors import BadConfig

TEMPLATE = PLUGINS["template"]
JOURNAL: Any = SimpleNamespace(record_of=lambda name: Record())
RULES = ConfirmationRules()
PRESSURE = Pressure(hard=True, scope="x", observed=1, threshold=2)


@dataclass
class Point:
    """An entry point of a wheel."""

    name: str
    holds: Any
    value: str = "wheel:PLUGIN"

    def load(self) -> Any:
        if isinstance(self.holds, Exception):
            raise self.holds
        return self.holds


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(**holds: Any) -> None:
        points = [Point(name, held) for name, held in holds.items()]
        monkeypatch.setattr(registry, "entry_points", lambda group: points if group == GROUP else [])

    return install


def mine(**fields: Any) -> Plugin[Any, Any, Any]:
    plain: dict[str, Any] = {"name": "mine", "settings": PluginSettings, "evaluate": lambda *_: (None, PRESSURE)}
    return replace(TEMPLATE, **plain | fields)


def test_a_wheel_is_imported_only_when_it_has_settings(wheels: Callable[..., None]) -> None:
    wheels(mine=RuntimeError("imported"), other=mine())
    assert list(read({})[1]) == [CPU_LOAD, MEMORY, RECLAIMED]
    assert "mine" in read({"plugins": {"other": {}}})[1]
    assert "mine" not in read({"plugins": {"other": {"enabled": False}}})[1]


@pytest.mark.parametrize(
    ("held", "why"),
    [
        pytest.param(ImportError("no module wheel"), "cannot be loaded: ImportError: no module wheel", id="import"),
        pytest.param(lambda: None, "is a function, not a Plugin", id="something else"),
        pytest.param(mine(settings=int), "no subclass of PluginSettings", id="settings"),
        pytest.param(mine(name=MEMORY), f"calls itself '{MEMORY}', as another plugin does", id="another's name"),
    ],
)
def test_a_broken_wheel_is_named_in_a_condition_and_the_others_go_on(
    wheels: Callable[..., None], held: Any, why: str
) -> None:
    wheels(bad=held, good=mine())
    plugins = read({"plugins": {"bad": {}, "good": {}}})[1]
    detectors = Detectors(plugins, RULES, JOURNAL)
    for view in pressed_views([busy(bound("batch", cpu=9000), 1)]):
        findings = detectors.evaluate(view)
    assert {name for name, finding in findings.items() if isinstance(finding, Pressure)} == {MEMORY, RECLAIMED, "mine"}
    (condition,) = (c for c in detectors.conditions("", 0.0) if c["type"] == "EvictionPluginFailed")
    assert condition["message"].startswith("sublet.evictor.plugins:bad: Refused: plugin 'bad' (wheel:PLUGIN)")
    assert why in condition["message"]


def test_settings_of_a_wheel_are_checked_like_ours_and_misspelt_ones_are_refused(wheels: Callable[..., None]) -> None:
    wheels(mine=mine(settings=TEMPLATE.settings))
    assert read({"plugins": {"mine": {"enabled": True, "least_available_ratio": 0.5}}})[1]["mine"].settings.enabled
    with pytest.raises(BadConfig, match=r"evictor\.plugins\.mine"):
        read({"plugins": {"mine": {"least_available_ratio": 5}}})
    with pytest.raises(BadConfig, match="did you mean 'mine'"):
        read({"plugins": {"mime": {}}})


def test_a_file_of_ours_comes_before_a_wheel_of_the_same_name(wheels: Callable[..., None]) -> None:
    wheels(template=RuntimeError("imported"))
    assert "template-eviction-plugin" in read({"plugins": {"template": {"enabled": True}}})[1]


VIEWS = pressed_views([busy(bound("batch", cpu=9000), 1)])


def detectors_of(**fields: Any) -> Detectors:
    other = Configured(TEMPLATE, TEMPLATE.settings(enabled=True))
    plugins = {"mine": Configured(mine(**fields), PluginSettings()), TEMPLATE.name: other}
    return Detectors(plugins, ConfirmationRules(max_input_age_s=11), JOURNAL)


def fails(*_: Any) -> Any:
    raise ZeroDivisionError("thirteen")


@pytest.mark.parametrize(
    ("evaluate", "why"),
    [
        pytest.param(fails, "ZeroDivisionError: thirteen", id="raises"),
        pytest.param(lambda *_: (None, None), "TypeError: evaluate: want a Pressure", id="says nothing"),
        pytest.param(lambda *_: (None, True), "TypeError: evaluate: want a Pressure", id="says something else"),
        pytest.param(lambda *_: None, "TypeError", id="returns no pair"),
        pytest.param(
            lambda *_: (None, replace(PRESSURE, observed=float("nan"))), "ValueError: observed nan", id="no number"
        ),
    ],
)
def test_a_plugin_that_fails_has_seen_nothing_and_the_next_one_is_asked(evaluate: Callable[..., Any], why: str) -> None:
    detectors = detectors_of(evaluate=evaluate)
    for view in VIEWS[:3]:
        findings = detectors.evaluate(view)
    assert findings["mine"] == "unknown"
    assert isinstance(findings[TEMPLATE.name], Pressure)
    assert detectors.evidence("mine", VIEWS[2].t_s) == "missing"
    (condition,) = (c for c in detectors.conditions("", 0.0) if c["type"] == "EvictionPluginFailed")
    assert condition["message"].startswith(f"mine: {why}")


@pytest.mark.parametrize(
    "rank",
    [
        pytest.param(fails, id="raises"),
        pytest.param(lambda *_: ("batch",), id="names no candidates"),
        pytest.param(lambda *_: (Candidate(pod("stranger"), Reason(rule="x")),), id="names a pod that is not there"),
        pytest.param(lambda *_: None, id="names nothing"),
    ],
)
def test_a_ranking_that_fails_evicts_nobody(rank: Callable[..., Any]) -> None:
    detectors = detectors_of(evaluate=lambda *_: (None, PRESSURE), rank=rank)
    for view in VIEWS[:2]:
        detectors.evaluate(view)
    ready = detectors.ready(VIEWS[1].t_s, set())
    choices = {c.plugin: c.victim for c in choose(ready, Surroundings())}
    assert choices["mine"] is None
    assert choices[TEMPLATE.name] is not None
    assert [c for c in detectors.conditions("", 0.0) if c["type"] == "EvictionPluginFailed"]


def test_a_plugin_may_cool_for_longer_than_the_evictor() -> None:
    plugin = mine(evaluate=lambda *_: (None, PRESSURE))
    evicted: Any = SimpleNamespace(record_of=lambda name: Record(1, VIEWS[1].t_s - 20.0))
    rules = ConfirmationRules(max_input_age_s=11, cooling_s=15)
    for cooling_s, acts in ((0.0, True), (20.0, True), (20.1, False)):
        plugins = {"mine": Configured(plugin, PluginSettings(cooling_s=cooling_s))}
        detectors = Detectors(plugins, rules, evicted)
        for view in VIEWS[:2]:
            detectors.evaluate(view)
        assert bool(detectors.ready(VIEWS[1].t_s, set())) == acts


def test_the_template_evicts_through_the_whole_service_once_it_is_enabled(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = node(plugins={"template": {"enabled": True}})
        await world.create_streams()
        world.run(SMALL, WEB, used_bytes=GIB)
        world.run(LARGE, used_bytes=2 * GIB)
        scarce = NodeReading(online_cpus="0-47", memory_total_bytes=TOTAL_BYTES, memory_available_bytes=GIB)
        async with world.life():
            await world.tick(3, node_reading=scarce)
        assert world.story == [("large", "intended"), ("large", "created"), ("large", "succeeded")]
        assert (world.events[1].plugin, world.events[1].scope) == (TEMPLATE.name, "memory.available")

    virtual(main())
