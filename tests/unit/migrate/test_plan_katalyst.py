"""`plan_katalyst`: each value of Katalyst's objects, and where it goes."""

import pytest
from plan_documents import katalyst

from services.central.core.katalyst.fields import FIELDS
from sublet.migrate.plan.katalyst import plan_katalyst
from sublet.migrate.plan.katalyst_flags import FLAG_FIELDS
from sublet.migrate.plan.line import MigrationPlan, PlanLine

LOAD = "evictionConfig.cpuPressureEvictionConfig."


def line(plan: MigrationPlan, field: str) -> PlanLine:
    return next(one for one in plan.lines if one.given_key == field)


@pytest.mark.parametrize(
    ("field", "effect", "key", "setting"),
    [
        ("spec.targetType", "kept", "", None),
        (f"spec.config.{LOAD}loadUpperBoundRatio", "kept", "", None),
        ("spec.config.advisorConfig.someKnob", "nothing", "", None),
        ("eviction-load-upper-bound-ratio", "maps", "settings.evictor.plugins.cpu_load.load_upper_bound_ratio", 2.5),
        ("eviction-enable-rss-overuse", "maps", "settings.evictor.plugins.rss_overuse.enabled", True),
        ("eviction-burst", "nothing", "", None),
        ("nodeSelector", "maps", "node.nodeSelector", {"sublet.io/agent": "here"}),
    ],
)
def test_a_value_goes_to_its_place(field: str, effect: str, key: str, setting: object) -> None:
    found = line(plan_katalyst(katalyst()), field)
    assert (found.effect, found.key, found.setting) == (effect, key, setting)


def test_a_config_object_names_where_it_goes() -> None:
    found = line(plan_katalyst(katalyst()), f"spec.config.{LOAD}loadUpperBoundRatio")
    assert found.note == "followed by central: evictor.plugins.cpu_load.load_upper_bound_ratio"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("loadUpperBoundRatio: 1.8", "loadUpperBoundRatio: 0.5", "want a number from 1 to 1000"),
        ("loadUpperBoundRatio: 1.8", "loadUpperBoundRatio: x", "want a number from 1 to 1000"),
        (
            "--eviction-load-upper-bound-ratio=2.5",
            "--eviction-load-upper-bound-ratio=0",
            "want a number from 1 to 1000",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_its_bound(old: str, new: str, said: str) -> None:
    plan = plan_katalyst(katalyst(old, new))
    assert len(plan.faults) == 1
    assert said in plan.faults[0].note


def test_two_schedulers_and_two_controllers_are_avoided() -> None:
    plan = plan_katalyst(katalyst())
    assert plan.values["scheduler"] == {"enabled": False}
    assert any("scale it to 0" in one.note for one in plan.lines if one.source == "Deployment/katalyst-controller")


def test_a_kind_that_central_does_not_follow_is_said() -> None:
    plan = plan_katalyst(katalyst("resource: adminqosconfigurations", "resource: authconfigurations"))
    assert line(plan, "spec.targetType").effect == "nothing"


def test_every_flag_leads_to_a_field_that_has_a_place() -> None:
    assert {path for path in FLAG_FIELDS.values() if path not in FIELDS} == {"evictionConfig.dryRun"}
