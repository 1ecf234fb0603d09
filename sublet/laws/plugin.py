"""Laws that every eviction plugin holds, over the moments of `plugin_moments` and pods that hypothesis makes up."""

import math
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any, get_args

from hypothesis import strategies as st
from pydantic import BaseModel

from services.evictor.core.arbiter.choice import ConfirmedPressure, choose
from services.evictor.core.arbiter.guards import Surroundings, never
from services.evictor.core.plugin import Candidate, Pressure, View, checked_ranking
from services.evictor.settings import Configured
from shared.contracts.pod import Pod, QosClass
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, NumaReading, PodReading, PoolReading
from shared.core.pods.qos import CRITICAL_PRIORITY
from shared.settings import check
from sublet.laws.law import Law, law_of
from sublet.laws.plugin_moments import (
    ENVELOPE,
    STEP_S,
    STEPS,
    bound,
    busy,
    calm_views,
    idle,
    pressed,
    pressed_views,
    shown,
)
from sublet.laws.result import BrokenLaw

LAWS: dict[str, Law[Configured]] = {}
"""The laws, each by the sentence that it is."""
_law = law_of(LAWS, examples=20)


def _busy_pod(name: str, qos: QosClass, used: int, **asked: Any) -> PodReading:
    return busy(bound(name, qos, **asked), used)


_pods = st.lists(
    st.builds(
        _busy_pod,
        name=st.sampled_from([f"p{i}" for i in range(12)]),
        qos=st.sampled_from(get_args(QosClass)),
        priority=st.sampled_from([-1, 0, 1000, CRITICAL_PRIORITY]),
        cpu=st.integers(0, 3000),
        memory=st.integers(0, 3),
        used=st.integers(0, 3),
        terminating=st.booleans(),
    ),
    max_size=6,
    unique_by=lambda reading: reading.pod.name,
)
_CALM = [
    idle(bound("batch", "reclaimed_cores", cpu=1, memory=100)),
    idle(bound("web", "shared_cores", cpu=1, memory=100)),
]
_OF_VIEW = ("allocation", "reclaimed", "reclaimed_by_numa")
_OF_SAMPLE = ("pools", "numas")
_FIGURES = sorted(
    {
        name
        for model in (NodeReading, NumaReading, ContainerReading, PoolReading)
        for name, field in model.model_fields.items()
        if not field.is_required()
    }
)


def _crowd(qos: QosClass) -> list[PodReading]:
    return [busy(bound(f"p{i}", qos, cpu=9000, memory=9), i) for i in range(3)]


def _ranking(tested: Configured, pressure: Pressure, view: View) -> tuple[Candidate, ...]:
    """Its candidates, as the evictor takes them."""
    rank = tested.plugin.rank
    answer: object = rank(view, pressure, tested.settings)
    if not isinstance(answer, Iterable):
        raise BrokenLaw(rank, f"rank: want candidates, got {answer!r}")
    candidates = tuple(answer)
    try:
        return checked_ranking(candidates, view)
    except (TypeError, ValueError, AttributeError) as error:
        raise BrokenLaw(rank, str(error)) from None


def _ranked(tested: Configured, readings: list[PodReading]) -> tuple[Candidate, ...]:
    """Whom it names at the end of a shortage."""
    pressure, view = pressed(tested.plugin, tested.settings, readings)
    return () if pressure is None else _ranking(tested, pressure, view)


def _victim(tested: Configured, readings: list[PodReading]) -> Pod | None:
    """Who would go, if its pressure were confirmed and nothing else spoke against it."""
    pressure, view = pressed(tested.plugin, tested.settings, readings)
    if pressure is None:
        return None
    ready = ConfirmedPressure(pressure, lambda: _ranking(tested, pressure, view))
    (choice,) = choose({tested.plugin.name: ready}, Surroundings())
    return choice.victim.pod if choice.victim else None


@_law()
def its_settings_have_a_sentence_and_enforce_unless_told_otherwise(tested: Configured) -> None:
    """Users read the sentence, and set `mode` where they want less."""
    if not tested.plugin.settings.__doc__:
        raise BrokenLaw(
            tested.plugin.evaluate, f"{tested.plugin.settings.__name__}: has no first line that says what it is"
        )
    if check(tested.plugin.settings, {}, where=tested.plugin.name).mode != "enforce":
        raise BrokenLaw(tested.plugin.evaluate, f"{tested.plugin.settings.__name__}: mode is not 'enforce' by default")


@_law()
def it_sees_a_pressure_where_there_is_one_and_names_who_would_relieve_it(tested: Configured) -> None:
    """So that no other law holds for want of pressure."""
    plugin = tested.plugin
    for qos in ("reclaimed_cores", "shared_cores"):
        crowd = _crowd(qos)
        pressure, view = pressed(plugin, tested.settings, crowd)
        if pressure is None:
            continue
        if not (pressure.why.rule and pressure.why.numbers):
            raise BrokenLaw(plugin.evaluate, "its pressure does not say why: give it Reason(rule=…, numbers={…})")
        only_taints = not pressure.hard and pressure.condition is not None
        if not (only_taints or _ranking(tested, pressure, view)):
            raise BrokenLaw(plugin.rank, "rank: names nobody, though three pods use far more than they asked for")
        return
    raise BrokenLaw(
        plugin.evaluate,
        f"it never said pressure in {STEPS * STEP_S:.0f} s in which of everything there is too little; "
        "if it asks for more, lower its thresholds: --set KEY=VALUE",
    )


@_law(readings=_pods, order=st.randoms(use_true_random=False))
def the_order_of_pods_in_a_sample_means_nothing(tested: Configured, readings: list[PodReading], order: Random) -> None:
    """Kubelet lists pods in any order."""
    plugin, mixed = tested.plugin, list(readings)
    order.shuffle(mixed)
    if pressed(plugin, tested.settings, readings)[0] != pressed(plugin, tested.settings, mixed)[0]:
        raise BrokenLaw(plugin.evaluate, "evaluate: says something else when the same pods come in another order")
    found = [candidate.pod for candidate in _ranked(tested, readings)]
    if found != [candidate.pod for candidate in _ranked(tested, mixed)]:
        raise BrokenLaw(plugin.rank, "rank: names the same pods in another order; end its order with namespace/name")
    if len({pod.uid for pod in found}) < len(found):
        raise BrokenLaw(plugin.rank, f"rank: names a pod twice: {[pod.key for pod in found]}")


@_law(readings=_pods)
def every_candidate_has_a_reason_and_a_relief_that_is_a_number(tested: Configured, readings: list[PodReading]) -> None:
    """Events show the reason; a relief is added up with those of others."""
    for candidate in _ranked(tested, readings):
        relief = candidate.relief
        if not candidate.why.rule:
            raise BrokenLaw(tested.plugin.rank, f"rank: {candidate.pod.key} has no reason")
        if relief is not None and not math.isfinite(relief):
            raise BrokenLaw(
                tested.plugin.rank, f"rank: {candidate.pod.key} has relief {relief}; want a finite number or None"
            )


@_law(readings=_pods)
def no_tenant_goes_while_a_reclaimed_pod_would_do_and_the_protected_never(
    tested: Configured, readings: list[PodReading]
) -> None:
    """The evictor's own guards see to it, as long as the ranking is one."""
    going = _victim(tested, readings)
    if going is None:
        return
    assert never(going, ()) is None, f"{going.key} would go, which is protected"
    assert not going.terminating, f"{going.key} would go, which is on its way out already"
    if going.qos != "reclaimed_cores":
        others = [candidate.pod for candidate in _ranked(tested, readings)]
        spared = [pod.key for pod in others if pod.qos == "reclaimed_cores" and never(pod, ()) is None]
        assert not spared, f"{going.key} would go, a tenant, though {spared} are reclaimed and would do"


@_law(readings=_pods)
def one_round_evicts_one_pod_at_most(tested: Configured, readings: list[PodReading]) -> None:
    """By default; whatever the ranking holds."""
    pressure, view = pressed(tested.plugin, tested.settings, readings)
    if pressure is not None:
        ready = ConfirmedPressure(pressure, lambda: _ranking(tested, pressure, view))
        (choice,) = choose({tested.plugin.name: ready}, Surroundings())
        assert len(choice.victims) <= 1, f"{len(choice.victims)} would go in one round"


@_law()
def without_any_figure_it_knows_nothing(tested: Configured) -> None:
    """A figure that is missing is neither calm nor pressure."""
    plugin, batch = tested.plugin, PodReading(pod=bound("batch", cpu=9, memory=9))
    empty = NodeSample(**ENVELOPE, seq=1, node_reading=NodeReading(online_cpus="0"))
    for one in (empty, empty.model_copy(update={"pods": (batch,)})):
        views = [View(STEP_S * step, one) for step in range(STEPS)]
        for finding in shown(plugin, tested.settings, views):
            if finding != "unknown":
                raise BrokenLaw(plugin.evaluate, f"evaluate: without any figure it says {finding!r}, not 'unknown'")


@_law()
def it_is_calm_where_there_is_plenty(tested: Configured) -> None:
    """Of everything there is more than enough, and the pods do next to nothing."""
    for finding in shown(tested.plugin, tested.settings, calm_views(_CALM)):
        if finding != "calm":
            raise BrokenLaw(tested.plugin.evaluate, f"evaluate: with plenty of everything it says {finding!r}")


@_law(gone=st.sets(st.sampled_from([*_FIGURES, *_OF_VIEW, *_OF_SAMPLE])))
def a_figure_that_is_absent_never_makes_a_pressure(tested: Configured, gone: set[str]) -> None:
    """With plenty of everything, of which a part cannot be read."""
    views = [_without(view, gone) for view in calm_views(_CALM)]
    for finding in shown(tested.plugin, tested.settings, views):
        if isinstance(finding, Pressure):
            raise BrokenLaw(tested.plugin.evaluate, f"evaluate: without {sorted(gone)} it says {finding!r}")


@_law(readings=_pods)
def evaluating_changes_nothing_but_the_memory_that_it_returns(tested: Configured, readings: list[PodReading]) -> None:
    """Memory is never changed in place: after a failure it starts anew."""
    plugin, view = tested.plugin, pressed_views(readings)[0]
    memory = plugin.start()
    first, second = (plugin.evaluate(memory, view, tested.settings) for _ in range(2))
    if first != second:
        raise BrokenLaw(plugin.evaluate, "evaluate: says something else of the same view and the same memory")
    if memory != plugin.start():
        raise BrokenLaw(plugin.evaluate, "evaluate: changes the memory that it is given; return a new one")


@_law()
def near_is_a_pressure_or_nothing(tested: Configured) -> None:
    """`sublet explain` asks it while the plugin is calm."""
    near = tested.plugin.near
    for view in (*calm_views(_CALM), *pressed_views(_crowd("reclaimed_cores"))):
        found: object = near(view, tested.settings)
        if found is None:
            continue
        if not (isinstance(found, Pressure) and math.isfinite(found.observed) and math.isfinite(found.threshold)):
            raise BrokenLaw(near, f"near: want a Pressure with finite figures or None, got {found!r}")


def _without(view: View, gone: set[str]) -> View:
    """The view with the figures of these names left out."""
    sample = view.sample
    pods = tuple(
        reading.model_copy(update={"containers": tuple(_blank(one, gone) for one in reading.containers)})
        for reading in sample.pods
    )
    fields = {
        "node_reading": _blank(sample.node_reading, gone),
        "numas": () if "numas" in gone else tuple(_blank(one, gone) for one in sample.numas),
        "pods": pods,
        "pools": () if "pools" in gone else tuple(_blank(one, gone) for one in sample.pools),
    }
    left: dict[str, Any] = {name: None for name in _OF_VIEW if name in gone}
    return replace(view, sample=sample.model_copy(update=fields), **left)


def _blank(reading: BaseModel, gone: set[str]) -> Any:
    fields = type(reading).model_fields
    return reading.model_copy(update={name: fields[name].get_default() for name in gone if name in fields})
