"""The what-if kind `tide_roles`: which nodes of a pool stay on a side, and which change it."""

from collections.abc import Mapping
from typing import Literal

from services.central.core.tide.roles import Reserves, Role, Standing, role_changes
from shared.whatif.decisions import Answer, Question, decision

AREA = "tide"
AskedRole = Literal["online_reserve", "offline_reserve", "tide_online", "tide_offline", "other"]


class NamedNode(Question):
    """A node; without a role it is new."""

    name: str
    role: AskedRole | None = None


class RolesQuestion(Question):
    """The nodes that a pool selects, and its reserves."""

    reserve_online: int | str | None = None
    reserve_offline: int | str | None = None
    nodes: list[NamedNode]
    grow_reserve: bool = True


class ChangedRole(Answer):
    """A node with its new role."""

    node: str
    role: Role


class RolesAnswer(Answer):
    """How many each reserve wants, what changes, and all nodes by role after it."""

    want_online: int
    want_offline: int
    changes: list[ChangedRole]
    online_reserve: list[str]
    offline_reserve: list[str]
    tide_online: list[str]
    tide_offline: list[str]


@decision("tide_roles", area=AREA, asks=RolesQuestion, answers=RolesAnswer)
def tide_roles(question: RolesQuestion) -> RolesAnswer:
    """Roles of the nodes of a tide pool."""
    nodes: Mapping[str, Standing] = {node.name: node.role for node in question.nodes}
    reserves = Reserves.of(question.reserve_online, question.reserve_offline, len(question.nodes))
    changes = role_changes(nodes, reserves, grow=question.grow_reserve)
    after = {**nodes, **{change.node: change.role for change in changes}}
    by_role: dict[Standing, list[str]] = {}
    for name, role in sorted(after.items()):
        by_role.setdefault(role, []).append(name)
    return RolesAnswer(
        want_online=reserves.online,
        want_offline=reserves.offline,
        changes=[ChangedRole(node=change.node, role=change.role) for change in changes],
        online_reserve=by_role.get("online_reserve", []),
        offline_reserve=by_role.get("offline_reserve", []),
        tide_online=by_role.get("tide_online", []),
        tide_offline=by_role.get("tide_offline", []),
    )
