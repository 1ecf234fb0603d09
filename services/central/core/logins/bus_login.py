"""The login of a leaf at the hub: which node it represents, and which subjects that node may use.

A node represents only itself (docs/facts/safety-rules.md#rule-8-least-right): its name is in the token that its agent's
pod is bound to (KEP-4193), which only a kubelet can request, and which the API server reviews.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.contracts.bus.channels import CHANNELS
from shared.contracts.bus.rights import STREAMS_OF_NODES, TO_NODES
from shared.contracts.bus.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY, NODE_API, NODE_KV
from shared.contracts.cluster.figures import MAX_FIGURES_BYTES
from shared.contracts.cluster.pauses import PAUSES_KEY
from shared.contracts.ids import node_token
from shared.contracts.readiness import node_config_key
from shared.errors import Refused

AUDIENCE = "sublet-bus"
"""Whom the token is made for; the API server itself does not take it."""
LEAF = "Leafnode"
"""The server's name for a leaf's connection (nats-server, kindString)."""
ACCOUNT = "NODES"
MAX_PAYLOAD_BYTES = MAX_FIGURES_BYTES + (16 << 10)
"""Of one message of a leaf, with room for headers; a larger one ends the leaf's connection."""
MAX_SUBSCRIPTIONS = 1024
"""Of a leaf: a handful for its agent, one for each command that runs there."""
ISSUER_TAG = "issuer:"
"""A tag of the server with the key by which it knows central's answers; servers write tags in small letters."""
NODE_NAME = "authentication.kubernetes.io/node-name"


@dataclass(frozen=True, slots=True)
class Asked:
    """A login question of the hub: the connection, the server, and the credentials."""

    server: str
    user: str
    kind: str
    token: str
    tags: tuple[str, ...] = ()
    """The server's own, from its configuration."""

    def wants(self, issuer: str, *, unnamed: bool) -> bool:
        """Whether the server takes an answer by this key; `unnamed` is for one that names none."""
        named = [tag for tag in self.tags if tag.startswith(ISSUER_TAG)]
        return f"{ISSUER_TAG}{issuer}".lower() in named if named else unnamed

    @classmethod
    def of(cls, claims: Mapping[str, Any]) -> "Asked":
        """From the claims of the server's request.

        Raises:
            Refused: they are not such a request.
        """
        try:
            asked = claims["nats"]
            client, shown = asked["client_info"], asked["connect_opts"]
            server, tags = asked["server_id"], asked["server_id"].get("tags") or ()
            kind, token = str(client.get("kind", "")), str(shown.get("pass", ""))
            return cls(server["id"], asked["user_nkey"], kind, token, tuple(str(tag).lower() for tag in tags))
        except (KeyError, TypeError, AttributeError) as error:
            raise Refused(f"not a request for a login: {error!r}", reason="malformed") from error


@dataclass(frozen=True, slots=True)
class BusRights:
    """Subjects of the hub that a node may publish on, and those that it may hear."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def token_of(asked: Asked) -> str:
    """Return the token to review.

    Raises:
        Refused: it is no leaf, or has no token. Other clients have a name and a password in the hub's configuration.
    """
    if asked.kind != LEAF:
        raise Refused(f"a {asked.kind or 'connection'} is no leaf; log in with a user of the hub", reason="no_leaf")
    if not asked.token:
        raise Refused("a leaf without a token; its password must be the one of its pod", reason="no_token")
    return asked.token


def node_of(review: Mapping[str, Any], *, agents: str) -> str:
    """The node that a reviewed token (the status of a TokenReview) speaks for; `agents` is its agents' user name.

    Raises:
        Refused: the token is not valid, is made for another audience, belongs to another user, or is bound to no node.
    """
    # `is not True`: any other value, even a text "true", means no.
    if review.get("authenticated") is not True:
        raise Refused(f"the token is not valid: {review.get('error') or 'the API server refuses it'}", reason="invalid")
    # An API server that does not know audiences omits them, and has then not compared any.
    if AUDIENCE not in (review.get("audiences") or ()):
        raise Refused(f"the token is not for {AUDIENCE}", reason="audience")
    user = review.get("user") or {}
    if user.get("username") != agents:
        raise Refused(f"{user.get('username')!r} is not {agents}", reason="stranger")
    names = (user.get("extra") or {}).get(NODE_NAME) or []
    # None: an API server before 1.30. Several: it is undecidable for which of them the token was issued.
    if len(names) != 1:
        raise Refused("the token is bound to no node; Kubernetes 1.30 or newer says which", reason="no_node")
    try:
        node_token(names[0])
    except (TypeError, ValueError) as error:
        raise Refused(str(error), reason="no_node") from error
    return str(names[0])


def rights_of(node: str) -> BusRights:
    """Return the rights of a node's leaf. No wildcard covers another node's subject, key or inbox.

    Creating consumers is not included, because a consumer delivers to any subject of the account that its creator
    names.
    """
    token = node_token(node)
    keys = [f"{CONFIG_BUCKET}.{key}" for key in (GLOBAL_CONFIG_KEY, PAUSES_KEY, node_config_key(node))]
    says = [channel.subject(node=token) for channel in CHANNELS if channel.reach == "cluster" and channel.of_nodes]
    reads = [f"{NODE_API}.DIRECT.GET.KV_{CONFIG_BUCKET}.$KV.{key}" for key in keys]
    reads += [f"{NODE_API}.STREAM.MSG.GET.{stream}" for stream in STREAMS_OF_NODES]
    hears = [f"{NODE_KV}.{key}" for key in keys] + [f"_INBOX_{who}.{token}.>" for who in ("cli", "node")]
    hears += [one.subject(node=token) for one in CHANNELS if one.subject() in TO_NODES]
    return BusRights(publish=(*says, *reads), subscribe=tuple(hears))


def user_claims(asked: Asked, node: str) -> dict[str, Any]:
    """Return the user that the hub assigns to the connection: a leaf with its node's rights, without an expiry.

    The user does not expire with the token, so that central may be away for longer: the claims stay true for as long as
    the connection lives, and the next connection is asked about again.
    """
    rights = rights_of(node)
    return {
        "aud": ACCOUNT,
        "sub": asked.user,
        "name": f"leaf of {node}",
        "nats": {
            "type": "user",
            "version": 2,
            "pub": _only(rights.publish),
            "sub": _only(rights.subscribe),
            "subs": MAX_SUBSCRIPTIONS,
            "data": -1,  # no server looks at it
            "payload": MAX_PAYLOAD_BYTES,
            "allowed_connection_types": ["LEAFNODE"],
        },
    }


def answer_claims(asked: Asked, *, user: str = "", refused: str = "") -> dict[str, Any]:
    """Return the answer to the server: the signed token of a user, or why there is none."""
    said = {"jwt": user} if user else {"error": refused}
    return {
        "aud": asked.server,
        "sub": asked.user,
        "nats": {"type": "authorization_response", "version": 2, **said},
    }


def _only(subjects: Sequence[str]) -> dict[str, list[str]]:
    return {"allow": list(subjects)}
