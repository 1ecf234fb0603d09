"""The mode of nodes that no config object is for: which of the places that say it counts."""

import pytest

from shared.settings import CommonSettings
from sublet.migrate.takeover.own_mode import BUILT_IN, Installed, own_mode


def said(central: str | None = None, node: str | None = None, variable: str | None = None) -> Installed:
    env = [{"name": "A", "value": "b"}, *([{"name": "SUBLET_MODE", "value": variable}] if variable else [])]
    containers = [{"name": "agent", "env": env}]
    return Installed(
        None if central is None else {"data": {"config.yaml": central}},
        None if node is None else {"data": {"settings.yaml": node}},
        {"spec": {"template": {"spec": {"containers": containers}}}},
    )


@pytest.mark.parametrize(
    ("seen", "mode"),
    [
        (said(node="mode: observe"), "observe"),
        (said(node="mode: enforce"), "enforce"),
        (said("{}", "mode: observe"), "observe"),
        (said("mode: enforce", "mode: observe"), "enforce"),
        (said("mode: observe", "mode: enforce", "enforce"), "observe"),
        (said("{}", "mode: observe", "enforce"), "enforce"),
        (said("mode: dry-run", "mode: observe"), "observe"),
        (said("mode: [", "mode: observe"), "observe"),
        (said("- mode", "mode: observe"), "observe"),
        (said(), BUILT_IN),
        (Installed(), BUILT_IN),
    ],
)
def test_the_nearest_word_counts(seen: Installed, mode: str) -> None:
    assert own_mode(seen) == mode


def test_where_nothing_says_it_it_is_as_the_services_have_it() -> None:
    assert CommonSettings.model_fields["mode"].default == BUILT_IN
