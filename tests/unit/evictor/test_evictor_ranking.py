"""What a plugin says of pressure that is not there yet, and who would go."""

import math

import pytest
from evictor_world import pod
from plugin_world import PLUGINS, bound, busy, idle, pressed, settings_of, view
from present import present

from services.evictor.core.arbiter.guards import Surroundings
from services.evictor.core.arbiter.ranking import MAX_RANKED, ranking_json, ranking_of
from services.evictor.core.plugin import Candidate, Pressure
from shared.contracts.envelope import Reason

CALM = [idle(bound("a", cpu=10)), idle(bound("web", "shared_cores"))]
BUSY = [busy(bound("a", cpu=9000)), busy(bound("b", cpu=8000), 2), busy(bound("web", "shared_cores"))]
SAYS = sorted(name for name, plugin in PLUGINS.items() if plugin.near(view(CALM, low=False), settings_of(name)))
AROUND = Surroundings(("kube-system",))


def test_the_plugins_that_are_on_by_default_say_how_far_off_they_are() -> None:
    on = {name for name, plugin in PLUGINS.items() if plugin.settings().enabled}
    assert len(on) == 3
    assert on <= set(SAYS)


@pytest.mark.parametrize("section", SAYS)
def test_what_is_near_is_not_there(section: str) -> None:
    near = present(PLUGINS[section].near(view(CALM, low=False), settings_of(section)))
    assert math.isfinite(near.observed)
    assert (near.observed > near.threshold) if near.below else (near.observed <= near.threshold)


@pytest.mark.parametrize("section", SAYS)
def test_under_pressure_it_has_the_figures_of_the_pressure(section: str) -> None:
    found, seen = pressed(section, BUSY)
    near = present(PLUGINS[section].near(seen, settings_of(section)))
    assert found is not None
    assert (near.scope, near.observed, near.threshold, near.below) == (
        found.scope, found.observed, found.threshold, found.below,
    )  # fmt: skip
    ranked = PLUGINS[section].rank(seen, near, settings_of(section))
    assert {c.pod.uid for c in ranked} >= {c.pod.uid for c in PLUGINS[section].rank(seen, found, settings_of(section))}


@pytest.mark.parametrize("section", sorted(PLUGINS))
def test_without_figures_nothing_is_near(section: str) -> None:
    nothing = view([], low=False)
    node = nothing.sample.node_reading.model_copy(
        update={"memory_free_bytes": None, "memory_available_bytes": None, "memory_total_bytes": None}
    )
    blind = type(nothing)(0.0, nothing.sample.model_copy(update={"node_reading": node}))
    assert PLUGINS[section].near(blind, settings_of(section)) is None


def test_the_line_has_every_candidate_with_the_guard_that_spares_it() -> None:
    pods = [pod("first"), pod("guard", namespace="kube-system"), pod("web", "shared_cores")]
    pressure = Pressure(hard=True, scope="memory", observed=1, threshold=2, below=True)
    seen = ranking_of(pressure, [Candidate(p, Reason(rule="order")) for p in pods], AROUND, met=False)
    assert [(place.candidate.pod.name, place.spared and place.spared.why) for place in seen.pods] == [
        ("first", None),
        ("guard", "protected_namespace"),
        ("web", "tenant_before_reclaimed"),
    ]
    row = ranking_json(seen)["line"][1]
    assert (row["pod"], row["guard"]) == ("kube-system/guard", "protected_namespace")
    assert row["says"]


def test_a_long_line_is_cut() -> None:
    candidates = [Candidate(pod(f"p{n}"), Reason(rule="order")) for n in range(MAX_RANKED + 5)]
    pressure = Pressure(hard=True, scope="memory", observed=1, threshold=2)
    assert len(ranking_of(pressure, candidates, AROUND, met=True).pods) == MAX_RANKED
