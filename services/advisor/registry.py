"""The registry finds policies: the files of `services/advisor/policies`, and those that wheels register.

No policy of a wheel is imported before it is selected, or before settings for it are given.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

from services.advisor import policies
from services.advisor.core.policy import Policy, PolicySettings
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import Refused, SettingProblem
from shared.registry import Registry

POLICIES: Registry[Policy[Any, Any]] = Registry(
    Policy, policies, "POLICY", group="sublet.advisor.policies", settings=PolicySettings
)


def known_policies() -> dict[str, Policy[Any, Any]]:
    """Every policy of the folder by name, ascending."""
    return POLICIES.known()


def outside_policies(taken: Iterable[str]) -> dict[str, EntryPoint]:
    """Return the policies that wheels have registered, by name, ascending, without names that files of ours already
    use."""
    return POLICIES.outside(taken)


def load(point: EntryPoint) -> Policy[Any, Any]:
    """Load the policy that an entry point names.

    Raises:
        Refused: `policy_broken`: it cannot be imported, or is no policy of that name; the message says which.
    """
    policy = POLICIES.load(point)
    if policy.name != point.name:
        raise Refused(
            f"{POLICIES.where(point)} calls itself {policy.name!r}; both names must be the same", reason=POLICIES.broken
        )
    return policy


def unknown(name: str, known: Iterable[str], *, selected: bool) -> SettingProblem:
    """Describe a selected or configured policy that is in no folder and no wheel."""
    path, value = (("advisor", "policy"), f" = {name!r}") if selected else (("advisor", "policies", name), "")
    return SettingProblem(path, f"{value}: no such policy; {did_you_mean(name, sorted(known))}")
