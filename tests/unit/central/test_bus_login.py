"""Who may come to the hub as whose leaf, and what a node may say and hear there: no node's rights touch another's."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from services.central.core.logins.bus_login import (
    ACCOUNT,
    AUDIENCE,
    LEAF,
    NODE_NAME,
    Asked,
    answer_claims,
    node_of,
    rights_of,
    token_of,
    user_claims,
)
from shared.adapters.kube.client import Document, Kube, KubeError
from shared.adapters.kube.tokens import KubeTokens
from shared.contracts.bus.subjects import (
    DECISIONS_STREAM,
    NODE_KV,
    decision_subject,
    shard_subject,
    state_subject,
    subject_matches,
)
from shared.contracts.cluster.decision import DecidedObject
from shared.contracts.cluster.heard import MOST_SHARDS, HeardRound
from shared.contracts.cluster.profiles import ServiceProfiles
from shared.contracts.ids import NAME_PATTERN, node_token
from shared.contracts.readiness import Readiness, node_config_key
from shared.errors import Refused, SubletError, Unavailable

AGENTS = "system:serviceaccount:sublet-system:sublet-node"
NODES = st.from_regex(NAME_PATTERN, fullmatch=True).filter(lambda name: "\n" not in name)
REQUEST = {
    "nats": {
        "server_id": {"id": "NSERVER", "name": "hub"},
        "user_nkey": "UKEY",
        "client_info": {"kind": LEAF},
        "connect_opts": {"user": "leaf", "pass": "token"},
    }
}
ASKED = Asked("NSERVER", "UKEY", LEAF, "token")


def review(**changes: Any) -> dict[str, Any]:
    """The status of a review of n1's token."""
    user = {"username": AGENTS, "extra": {NODE_NAME: ["n1"], "authentication.kubernetes.io/pod-name": ["p"]}}
    return {"authenticated": True, "audiences": [AUDIENCE], "user": user, **changes}


def test_a_request_of_the_server_is_read() -> None:
    assert Asked.of(REQUEST) == ASKED
    assert token_of(ASKED) == "token"


@pytest.mark.parametrize("claims", [{}, {"nats": {}}, {"nats": []}, {"nats": {**REQUEST["nats"], "server_id": None}}])
def test_something_else_is_no_request(claims: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        Asked.of(claims)
    assert refused.value.reason == "malformed"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (Asked("N", "U", "Client", "token"), "no_leaf"),
        (Asked("N", "U", "", "token"), "no_leaf"),
        (Asked("N", "U", LEAF, ""), "no_token"),
    ],
)
def test_only_a_leaf_with_a_token_is_reviewed(asked: Asked, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        token_of(asked)
    assert refused.value.reason == reason


def test_a_reviewed_token_names_the_node() -> None:
    assert node_of(review(), agents=AGENTS) == "n1"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"authenticated": False, "error": "expired"}, "invalid"),
        ({"authenticated": None}, "invalid"),
        ({"authenticated": "true"}, "invalid"),
        ({"audiences": None}, "audience"),
        ({"audiences": ["https://kubernetes.default.svc"]}, "audience"),
        ({"user": None}, "stranger"),
        ({"user": {"username": f"{AGENTS}x", "extra": {NODE_NAME: ["n1"]}}}, "stranger"),
        ({"user": {"username": AGENTS}}, "no_node"),
        ({"user": {"username": AGENTS, "extra": {NODE_NAME: []}}}, "no_node"),
        ({"user": {"username": AGENTS, "extra": {NODE_NAME: ["n1", "n2"]}}}, "no_node"),
        ({"user": {"username": AGENTS, "extra": {NODE_NAME: ["*"]}}}, "no_node"),
        ({"user": {"username": AGENTS, "extra": {NODE_NAME: ["n1.>"]}}}, "no_node"),
        ({"user": {"username": AGENTS, "extra": {NODE_NAME: [7]}}}, "no_node"),
    ],
)
def test_any_other_answer_opens_nothing(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        node_of(review(**changes), agents=AGENTS)
    assert refused.value.reason == reason


@given(NODES)
def test_a_node_may_send_its_heartbeat_and_read_its_key(node: str) -> None:
    rights = rights_of(node)
    assert state_subject(Readiness, node) in rights.publish
    assert f"{NODE_KV}.sublet-config.{node_config_key(node)}" in rights.subscribe
    assert state_subject(ServiceProfiles, node) in rights.subscribe


@given(NODES, NODES)
def test_no_right_of_a_node_covers_what_is_anothers(node: str, other: str) -> None:
    assume(node != other)
    token = node_token(other)
    others = [
        state_subject(Readiness, other),
        # What the hub maps heartbeats to is nobody's to say, its own neither.
        *(
            shard_subject(shard).replace("*", name)
            for shard in range(MOST_SHARDS)
            for name in (token, node_token(node))
        ),
        state_subject(HeardRound, node),
        state_subject(HeardRound, other),
        state_subject(ServiceProfiles, other),
        f"sublet.cluster.v1.intent.{token}.0a-1",
        f"sublet.cluster.v1.event.eviction.created.default.{token}",
        f"SUBLET.API.DIRECT.GET.KV_sublet-config.$KV.sublet-config.node.{token}",
        f"SUBLET.KV.sublet-config.node.{token}",
        f"_INBOX_node.{token}.x.y",
        f"_INBOX_cli.{token}.x.y",
    ]
    rights = rights_of(node)
    for subject in others:
        assert not [right for right in rights.publish + rights.subscribe if subject_matches(right, subject)]


@given(NODES)
def test_a_node_hears_of_services_and_says_nothing_of_them(node: str) -> None:
    subject = state_subject(ServiceProfiles, node)
    assert not [right for right in rights_of(node).publish if subject_matches(right, subject)]


@given(NODES)
def test_a_node_may_not_make_change_or_delete_anything_of_jetstreams(node: str) -> None:
    for right in rights_of(node).publish:
        assert not {"CONSUMER", "CREATE", "UPDATE", "DELETE", "PURGE", ">"} & set(right.split("."))
        assert not right.startswith("$")


def test_the_user_is_a_leaf_of_its_own_account_and_bound_to_the_question() -> None:
    claims = user_claims(ASKED, "n1")
    rights = rights_of("n1")
    assert (claims["aud"], claims["sub"]) == (ACCOUNT, "UKEY")
    assert claims["nats"]["allowed_connection_types"] == ["LEAFNODE"]
    assert claims["nats"]["pub"] == {"allow": list(rights.publish)}
    assert claims["nats"]["sub"] == {"allow": list(rights.subscribe)}


def test_an_answer_holds_a_user_or_a_reason_never_both() -> None:
    good, bad = answer_claims(ASKED, user="eyJ"), answer_claims(ASKED, refused="no")
    assert (good["aud"], good["sub"]) == ("NSERVER", "UKEY")
    assert (good["nats"].get("jwt"), good["nats"].get("error")) == ("eyJ", None)
    assert (bad["nats"].get("jwt"), bad["nats"].get("error")) == (None, "no")


class OneAnswer(Kube):
    """An API server that gives one answer."""

    def __init__(self, answer: dict[str, Any] | SubletError) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[tuple[str, str, object]] = []

    async def call(self, method: str, path: str, *, body: Any = None, **_more: Any) -> Document:
        self.asked.append((method, path, body["spec"]))
        if isinstance(self.answer, SubletError):
            raise self.answer
        return self.answer


async def test_a_review_asks_for_our_audience_and_gives_the_status() -> None:
    kube = OneAnswer({"status": review()})
    assert await KubeTokens(kube).review("t", AUDIENCE) == review()
    spec = {"token": "t", "audiences": [AUDIENCE]}
    assert kube.asked == [("POST", "/apis/authentication.k8s.io/v1/tokenreviews", spec)]


@pytest.mark.parametrize("error", [KubeError("POST", 403, {"message": "no"}), Unavailable("no answer")])
async def test_a_review_that_was_not_made_is_no_review(error: SubletError) -> None:
    with pytest.raises(Unavailable):
        await KubeTokens(OneAnswer(error)).review("t", AUDIENCE)
    assert await KubeTokens(OneAnswer({})).review("t", AUDIENCE) == {}


def test_no_node_says_what_central_decided() -> None:
    about = DecidedObject(kind="node", name="n1")
    assert not any(subject_matches(may, decision_subject("tide", about)) for may in rights_of("n1").publish)
    assert not any(DECISIONS_STREAM in may for may in rights_of("n1").publish)
