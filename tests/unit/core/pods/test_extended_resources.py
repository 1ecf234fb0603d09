"""The reclaimed resources under both names: whichever a pod uses, no more than the offer is given out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.pod import RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY
from shared.core.pods.extended_resources import OTHER_NAME, node_amounts, requests_of

CPU, TUTORIAL_CPU, TUTORIAL_MEMORY = RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY
AMOUNTS = st.integers(0, 1 << 45)


def container(always: bool = False, **requests: str) -> dict[str, Any]:
    names = {"cpu": CPU, "tutorial": TUTORIAL_CPU, "memory": TUTORIAL_MEMORY, "native": "cpu"}
    made = {"resources": {"requests": {names[name]: amount for name, amount in requests.items()}}}
    return made | ({"restartPolicy": "Always"} if always else {})


@given(
    st.dictionaries(st.sampled_from([TUTORIAL_CPU, TUTORIAL_MEMORY]), AMOUNTS),
    st.dictionaries(st.sampled_from(sorted(OTHER_NAME)), AMOUNTS),
)
def test_what_can_still_be_placed_under_either_name_is_at_most_the_offer_less_all_requests(
    offered: dict[str, int], asked: dict[str, int]
) -> None:
    amounts = node_amounts(offered, asked)
    assert amounts.keys() == {spelling for name in offered for spelling in (name, OTHER_NAME[name])}
    for name, offer in offered.items():
        left = max(0, offer - asked.get(name, 0) - asked.get(OTHER_NAME[name], 0))
        for spelling in (name, OTHER_NAME[name]):
            free = max(0, amounts[spelling] - asked.get(spelling, 0))
            assert 0 <= free <= left


@given(AMOUNTS, AMOUNTS)
def test_pods_of_one_name_alone_may_take_the_whole_offer(offer: int, asked: int) -> None:
    amounts = node_amounts({TUTORIAL_CPU: offer}, {CPU: asked})
    assert amounts == {CPU: offer, TUTORIAL_CPU: max(0, offer - asked)}


@pytest.mark.parametrize(
    ("spec", "asks"),
    [
        ({}, {}),
        ({"containers": [container(native="2")]}, {}),
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
