"""Which network card takes a container: whatever is asked, the card that is named fits."""

from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Refused
from sublet.reference.nic_choice import BandwidthAsked, CardQuestion, NicAsked, nic_choice

amounts = st.builds(BandwidthAsked, egress_mbps=st.integers(0, 3000), ingress_mbps=st.integers(0, 3000))
numas = st.lists(st.integers(0, 2), max_size=3)
cards = st.lists(
    st.builds(
        NicAsked,
        name=st.sampled_from(["eth0", "eth1", "eth2", "eth3"]),
        speed_mbps=st.sampled_from([0, 1000, 2500, 2501]),
        numas=numas,
        netns=st.none() | st.just("ns2"),
        healthy=st.booleans(),
        allocated=amounts,
    ),
    max_size=4,
    unique_by=lambda nic: nic.name,
)
questions = st.builds(
    CardQuestion,
    nics=cards,
    reserved=amounts,
    request=amounts,
    namespace_type=st.none() | st.sampled_from(["host", "host_preferred", "not_host", "not_host_preferred"]),
    hint_numas=st.none() | numas,
)


@given(questions)
def test_law_a_card_that_is_named_fits_and_where_one_fits_one_is_named(question: CardQuestion) -> None:
    try:
        told = nic_choice(question)
    except Refused:
        first, kept = question.nics[0], question.reserved
        assert kept.egress_mbps >= first.speed_mbps * 94 // 100 or kept.ingress_mbps >= first.speed_mbps * 90 // 100
        return
    by_name = {nic.name: nic for nic in question.nics}
    assert all(free.egress_mbps >= 0 and free.ingress_mbps >= 0 for free in told.free.values())
    fits = {name for name, nic in by_name.items() if _fits(nic, told.free[name].model_dump(), question)}
    assert told.nic in fits if fits else told.nic is None
    if told.nic and question.hint_numas:
        exact = {name for name in fits if set(by_name[name].numas) == set(question.hint_numas)}
        assert not exact or told.nic in exact


@given(questions)
def test_law_the_order_of_cards_behind_the_first_decides_nothing(question: CardQuestion) -> None:
    other = question.model_copy(update={"nics": [*question.nics[:1], *reversed(question.nics[1:])]})
    try:
        assert nic_choice(question).nic == nic_choice(other).nic
    except Refused:
        return


def _fits(nic: NicAsked, free: dict[str, int], question: CardQuestion) -> bool:
    request, hint = question.request, question.hint_numas
    if free["egress_mbps"] < request.egress_mbps or free["ingress_mbps"] < request.ingress_mbps:
        return False
    if not nic.healthy and (request.egress_mbps or request.ingress_mbps):
        return False
    if (question.namespace_type == "host" and nic.netns) or (question.namespace_type == "not_host" and not nic.netns):
        return False
    return not hint or set(nic.numas) <= set(hint)
