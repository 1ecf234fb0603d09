"""Where policies come from: the files of `services/advisor/policies`, and wheels that register one.

A wheel does so in its own pyproject.toml, without a change here:

    [project.entry-points."sublet.advisor.policies"]
    mine = "my_package.my_module:POLICY"

Nothing of it is imported before it is selected, or before settings for it are given.
"""

import difflib
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from services.advisor import policies
from services.advisor.core.policy import Policy, PolicySettings
from shared.core.scan import modules_in
from shared.errors import BadConfig, Refused

GROUP = "sublet.advisor.policies"
"""The entry point group."""
BROKEN = "policy_broken"


def known_policies() -> dict[str, Policy[Any, Any]]:
    """Every policy of the folder by name, ascending."""
    return {name: module.POLICY for name, module in modules_in(policies).items()}


def outside_policies(taken: Iterable[str]) -> dict[str, EntryPoint]:
    """What wheels have registered, by name, ascending; a name that is taken by a file of ours is not theirs."""
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return {point.name: point for point in found if point.name not in set(taken)}


def load(point: EntryPoint) -> Policy[Any, Any]:
    """The policy that an entry point names.

    Raises:
        Refused: `policy_broken`, it cannot be imported, or is no policy of that name; the message says which.
    """
    where = f"policy {point.name!r} ({point.value})"
    try:
        policy: Any = point.load()
    except Exception as error:  # an import runs whatever the wheel holds
        raise Refused(f"{where} cannot be loaded: {type(error).__name__}: {error}", reason=BROKEN) from error
    if not isinstance(policy, Policy):
        raise Refused(f"{where} is a {type(policy).__name__}, not a Policy", reason=BROKEN)
    if policy.name != point.name:
        raise Refused(f"{where} calls itself {policy.name!r}; both names must be the same", reason=BROKEN)
    own_settings: Any = policy.settings
    if not (isinstance(own_settings, type) and issubclass(own_settings, PolicySettings)):
        raise Refused(f"{where}: its settings are no subclass of PolicySettings", reason=BROKEN)
    loaded: Policy[Any, Any] = policy
    return loaded


def unknown(name: str, known: Iterable[str]) -> BadConfig:
    """The error for a policy that nobody has."""
    known = sorted(known)
    hint = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {hint[0]!r}?" if hint else f"known: {', '.join(known)}"
    return BadConfig(f"settings: advisor: no policy {name!r}; {meant}", reason="invalid")
