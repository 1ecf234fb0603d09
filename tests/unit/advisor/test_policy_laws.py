"""Laws that every policy of the folder holds to; a new file there is tested without a change here."""

from collections.abc import Mapping
from typing import Any

import pytest

from services.advisor.registry import known_policies
from sublet.laws.law import Law
from sublet.laws.policy import LAWS

POLICIES: Mapping[str, Any] = known_policies()


def test_the_folder_holds_the_default_policy_under_its_files_name() -> None:
    assert "canonical" in POLICIES
    assert all(policy.name == name for name, policy in POLICIES.items())


def test_there_are_nine_laws() -> None:
    assert len(LAWS) == 9


@pytest.mark.parametrize("law", [pytest.param(law, id=name.replace(" ", "_")) for name, law in LAWS.items()])
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_holds_each_law(name: str, law: Law[Any]) -> None:
    law(POLICIES[name])
