"""The reclaimed resources under both names: whichever a pod uses, no more than the offer is given out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.pod import (
    BATCH_CPU,
    BATCH_MEMORY,
    FIRST_BATCH_CPU,
    MID_CPU,
    RECLAIMED_CPU,
    RECLAIMED_MEMORY,
    TUTORIAL_RECLAIMED_CPU,
    TUTORIAL_RECLAIMED_MEMORY,
)
from shared.core.pods.extended_resources import BATCH_NAMES, OTHER_NAME, node_amounts, own_names, requests_of

CPU, TUTORIAL_CPU, TUTORIAL_MEMORY = RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY
AMOUNTS = st.integers(0, 1 << 45)
CPU_NAMES = {CPU, TUTORIAL_CPU, BATCH_CPU, FIRST_BATCH_CPU}


def written_by(manager: str, *names: str, part: str = "f:allocatable") -> dict[str, Any]:
    return {"manager": manager, "fieldsV1": {"f:status": {part: {f"f:{name}": {} for name in names}}}}


def container(always: bool = False, **requests: str) -> dict[str, Any]:
    names = {
        "batch": BATCH_CPU,
        "first": FIRST_BATCH_CPU,
        "cpu": CPU,
        "tutorial": TUTORIAL_CPU,
        "memory": TUTORIAL_MEMORY,
        "native": "cpu",
    }
    made = {"resources": {"requests": {names[name]: amount for name, amount in requests.items()}}}
    return made | ({"restartPolicy": "Always"} if always else {})


@given(
    st.dictionaries(st.sampled_from([TUTORIAL_CPU, TUTORIAL_MEMORY, BATCH_CPU, BATCH_MEMORY]), AMOUNTS),
    st.dictionaries(st.sampled_from(sorted(OTHER_NAME)), AMOUNTS),
)
def test_what_can_still_be_placed_under_any_name_is_at_most_the_offer_less_all_requests(
    offered: dict[str, int], asked: dict[str, int]
) -> None:
    amounts = node_amounts(offered, asked)
    assert amounts.keys() == {spelling for name in offered for spelling in (name, OTHER_NAME[name])}
    for name, offer in offered.items():
        account = CPU_NAMES if name in CPU_NAMES else OTHER_NAME.keys() - CPU_NAMES
        left = max(0, offer - sum(asked.get(one, 0) for one in account))
        for spelling in (name, OTHER_NAME[name]):
            free = max(0, amounts[spelling] - asked.get(spelling, 0))
            assert 0 <= free <= left


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_mid_resources_have_an_account_of_their_own(mid: int, offer: int, asked: int) -> None:
    amounts = node_amounts({MID_CPU: mid, TUTORIAL_CPU: offer}, {CPU: asked})
    assert amounts[MID_CPU] == mid
    assert amounts[CPU] == offer


def test_mid_resources_are_ours_where_we_wrote_them() -> None:
    theirs = {"metadata": {"managedFields": [written_by("koord-manager", MID_CPU)]}}
    ours = {"metadata": {"managedFields": [written_by("sublet-reporter", MID_CPU)]}}
    assert [MID_CPU in own_names(node) for node in (theirs, ours)] == [False, True]


@given(AMOUNTS, AMOUNTS)
def test_pods_of_one_name_alone_may_take_the_whole_offer(offer: int, asked: int) -> None:
    amounts = node_amounts({TUTORIAL_CPU: offer}, {CPU: asked})
    assert amounts == {CPU: offer, TUTORIAL_CPU: max(0, offer - asked)}


@pytest.mark.parametrize(
    ("spec", "asks"),
    [
        ({}, {}),
        ({"containers": [container(native="2")]}, {}),
        ({"containers": [container(batch="2k", first="500")]}, {BATCH_CPU: 2000, FIRST_BATCH_CPU: 500}),
        ({"containers": [container(cpu="2k"), container(cpu="500", tutorial="1k")]}, {CPU: 2500, TUTORIAL_CPU: 1000}),
        ({"containers": [container(cpu="1k")], "initContainers": [container(cpu="3k")]}, {CPU: 3000}),
        ({"containers": [container(cpu="1k")], "initContainers": [container(cpu="500")]}, {CPU: 1000}),
        ({"containers": [container(cpu="1k")], "initContainers": [container(always=True, cpu="500")]}, {CPU: 1500}),
        ({"containers": [container(cpu="1k")],
          "initContainers": [container(always=True, cpu="500"), container(cpu="2k")]}, {CPU: 2500}),
        ({"containers": [container(cpu="1k")],
          "initContainers": [container(cpu="2k"), container(always=True, cpu="500")]}, {CPU: 2000}),
        ({"containers": [container(cpu="1k")], "initContainers": [container(tutorial="2k", memory="1Gi")]},
         {CPU: 1000, TUTORIAL_CPU: 2000, TUTORIAL_MEMORY: 1 << 30}),
    ],
)  # fmt: skip
def test_what_a_pod_asks_for(spec: dict[str, Any], asks: dict[str, int]) -> None:
    assert requests_of({"spec": spec}) == asks
    for phase in ("Succeeded", "Failed"):
        assert requests_of({"spec": spec, "status": {"phase": phase}}) == {}


def test_a_pod_of_either_dialect_is_taken_from_what_the_other_one_shows() -> None:
    offered = {TUTORIAL_CPU: 10_000, BATCH_CPU: 8_000}
    amounts = node_amounts(offered, {CPU: 3_000, BATCH_CPU: 2_000})
    assert amounts == {CPU: 8_000, TUTORIAL_CPU: 5_000, BATCH_CPU: 5_000, FIRST_BATCH_CPU: 3_000}


@pytest.mark.parametrize(
    ("entries", "batch"),
    [
        pytest.param([], set(), id="nobody says who wrote them"),
        pytest.param([written_by("koord-manager", BATCH_CPU)], set(), id="Koordinator's own controller"),
        pytest.param([written_by("sublet-reporter", BATCH_CPU)], {BATCH_CPU}, id="the reporter"),
        pytest.param([written_by("sublet-central", BATCH_CPU, part="f:capacity")], {BATCH_CPU}, id="central"),
        pytest.param([{"manager": "sublet-reporter"}, {}], set(), id="an entry without fields"),
    ],
)
def test_batch_resources_are_ours_only_where_we_wrote_them(entries: list[dict[str, Any]], batch: set[str]) -> None:
    names = {CPU, RECLAIMED_MEMORY, TUTORIAL_CPU, TUTORIAL_MEMORY}
    assert own_names({"metadata": {"managedFields": entries}}) == names | batch
    assert own_names({}) == names
    assert not names & BATCH_NAMES
