"""Identities that travel in messages: node tokens, pod UIDs, intent ids."""

import re
import uuid
from typing import Annotated, NewType

from pydantic import StringConstraints

IntentId = NewType("IntentId", str)

# RFC 1123 subdomain, as Kubernetes requires of node and pod names: it can hold neither "/" nor "_".
NAME_PATTERN = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
# Pod UIDs become folder names under the cgroup root: hexadecimal and dashes only
# (docs/facts/safety-rules.md#rule-8-least-right).
UID_PATTERN = r"^[0-9a-f]([-0-9a-f]{0,62}[0-9a-f])?$"

NodeName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
ObjectName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
PodUid = Annotated[str, StringConstraints(pattern=UID_PATTERN)]

_INTENT_SPACE = uuid.UUID("6f0c0d9e-6a0c-5c3b-9f0e-2d7a5c1b8e44")


def node_token(node: str) -> str:
    """The node's name as one NATS token: every ``.`` becomes ``_``.

    Reversible, because a Kubernetes name holds no ``_`` (docs/facts/nats.md#tokens-of-subjects).

    Raises:
        ValueError: the name is not a Kubernetes node name.
    """
    if not re.fullmatch(NAME_PATTERN, node):
        raise ValueError(f"node name {node!r}: want lower-case letters, digits, '-' and '.', at most 253 characters")
    return node.replace(".", "_")


def node_of_token(token: str) -> str:
    """The node's name behind a token made by `node_token`."""
    return token.replace("_", ".")


def intent_id(node: str, pod_uid: str, plugin: str, episode: int) -> IntentId:
    """The same decision gives the same id, whoever computes it and however often."""
    return IntentId(str(uuid.uuid5(_INTENT_SPACE, f"{node}/{pod_uid}/{plugin}/{episode}")))
