"""Reclaimed resources: what a pod takes of an offer, and which node has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.scheduling.amounts import effective_request, one_spelling
from services.central.core.scheduling.reclaimed_fit import RECLAIMED, insufficient, reclaimed_request
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_CPU

OFFERS = st.fixed_dictionaries({name: st.integers(0, 1 << 20) for name in RECLAIMED})


def wanted(cpu_millis: int = 0, memory_bytes: int = 0) -> dict[str, int]:
    return {RECLAIMED_CPU: cpu_millis, RECLAIMED_MEMORY: memory_bytes}


def test_a_pod_takes_the_sum_or_the_largest_init_container_and_its_overhead() -> None:
    running = [{RECLAIMED_CPU: 300, RECLAIMED_MEMORY: 10}, {TUTORIAL_RECLAIMED_CPU: 300}]
    init = [{TUTORIAL_RECLAIMED_CPU: 700}, {RECLAIMED_CPU: 500, RECLAIMED_MEMORY: 5}]
    assert effective_request(init, running, {TUTORIAL_RECLAIMED_CPU: 50}) == wanted(750, 10)


def test_two_spellings_of_one_resource_are_counted_once() -> None:
    assert one_spelling({TUTORIAL_RECLAIMED_CPU: 5, RECLAIMED_CPU: 3, "cpu": 1}) == {RECLAIMED_CPU: 5, "cpu": 1}


def test_only_reclaimed_pods_take_of_the_offer() -> None:
    effective = wanted(5, 6) | {"cpu": 9}
    assert reclaimed_request("reclaimed_cores", effective) == wanted(5, 6)
    assert reclaimed_request("shared_cores", effective) == wanted()


@pytest.mark.parametrize(
    ("request_", "allocatable", "requested", "missing"),
    [
        pytest.param(wanted(10, 10), wanted(10, 10), {}, [], id="it fits exactly"),
        pytest.param(wanted(10), wanted(10), wanted(1), [RECLAIMED_CPU], id="others took some"),
        pytest.param(wanted(10, 1), {}, {}, [RECLAIMED_MEMORY, RECLAIMED_CPU], id="nothing offered, ascending"),
        pytest.param(wanted(), wanted(), wanted(9, 9), [], id="a request of nothing fits everywhere"),
        pytest.param(wanted(), None, {}, [], id="also without a report"),
        pytest.param(wanted(1), None, {}, ["no_report"], id="a node that never reported"),
        pytest.param(wanted(1), wanted(9, 5), wanted(0, 6), [RECLAIMED_MEMORY], id="an offer below what was given"),
    ],
)
def test_a_node_lacks_what_is_asked_beyond_what_is_left(
    request_: dict[str, int], allocatable: dict[str, int] | None, requested: dict[str, int], missing: list[str]
) -> None:
    assert insufficient(request_, allocatable, requested) == missing


@given(OFFERS, OFFERS, OFFERS, OFFERS)
def test_law_a_larger_offer_never_lacks_more(
    request_: dict[str, int], offer: dict[str, int], more: dict[str, int], taken: dict[str, int]
) -> None:
    larger = {name: offer[name] + more[name] for name in offer}
    assert set(insufficient(request_, larger, taken)) <= set(insufficient(request_, offer, taken))
