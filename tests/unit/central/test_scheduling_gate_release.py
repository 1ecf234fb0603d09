"""Gated pods are released in order, as far as what is free goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.scheduling.gate_release import GatedPod, release

OWN, OTHER = "sublet.io/wait-for-capacity", "example.org/quota"


def pod(
    name: str, cpu: int = 1, *, priority: int = 0, created_s: float = 0, gates: tuple[str, ...] = (OWN,)
) -> GatedPod:
    return GatedPod("d", name, created_s, gates, {"cpu": cpu}, priority)


@pytest.mark.parametrize(
    ("pods", "free", "released", "blocked_by"),
    [
        pytest.param([pod("b", created_s=2), pod("a", created_s=3), pod("c", created_s=1)], 9, "cba", None, id="age"),
        pytest.param([pod("b", created_s=1), pod("a", created_s=2, priority=1)], 9, "ab", None, id="priority first"),
        pytest.param([pod("b"), pod("a")], 9, "ab", None, id="then by name"),
        pytest.param([pod("a", 3), pod("b", 3), pod("c", 1)], 5, "a", "b", id="nobody overtakes"),
        pytest.param([pod("a", 5)], 5, "a", None, id="exactly what is free"),
        pytest.param([pod("a", gates=(OWN, OTHER)), pod("b")], 1, "b", None, id="another's gate: it does not count"),
        pytest.param([pod("a", gates=(OTHER,)), pod("b", gates=())], 9, "", None, id="no gate of ours"),
        pytest.param([pod("a", 0), pod("b", 1)], 0, "a", "b", id="a request of nothing needs nothing"),
        pytest.param([pod("a", 0)], -5, "a", None, id="also where more was given than there is"),
        pytest.param([], 5, "", None, id="nobody waits"),
    ],
)  # fmt: skip
def test_pods_go_in_order_while_there_is_room(
    pods: list[GatedPod], free: int, released: str, blocked_by: str | None
) -> None:
    found = release(OWN, pods, {"cpu": free})
    assert "".join(one.name for one in found.pods) == released
    assert (found.blocked_by and found.blocked_by.name) == blocked_by
    assert found.free == {"cpu": free - sum(one.requests["cpu"] for one in found.pods)}


def test_what_nobody_has_is_not_free() -> None:
    assert release(OWN, [pod("a")], {}).blocked_by is not None


def test_namespaces_stand_before_names() -> None:
    one, other = GatedPod("a", "z", 0, (OWN,), {}), GatedPod("b", "a", 0, (OWN,), {})
    assert release(OWN, [other, one], {}).pods == (one, other)


PODS = st.lists(
    st.builds(
        pod,
        st.sampled_from("abcdef"),
        st.integers(0, 9),
        priority=st.integers(0, 2),
        created_s=st.integers(0, 3),
        gates=st.sampled_from([(OWN,), (OWN, OTHER), ()]),
    ),
    max_size=8,
    unique_by=lambda one: one.name,
)


@given(PODS, st.integers(0, 20), st.integers(0, 20))
def test_law_no_more_is_promised_than_is_free_and_more_room_only_lets_more_go(
    pods: list[GatedPod], free: int, more: int
) -> None:
    found, wider = (release(OWN, pods, {"cpu": amount}) for amount in (free, free + more))
    assert found.free["cpu"] >= 0
    assert wider.pods[: len(found.pods)] == found.pods
    assert release(OWN, reversed(pods), {"cpu": free}) == found
    again = [one for one in pods if one not in found.pods]
    assert release(OWN, again, found.free).pods == (), "one pass releases all that may go"
