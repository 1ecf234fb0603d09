"""The policy in the README is one that works."""

import re
from pathlib import Path
from typing import Any

import pytest
from advisor_world import MakePod, MakeSample

from services.advisor.core.model.machine import Bounds
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.policy import Policy
from services.advisor.core.round.decide import SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy

README = Path(__file__).parents[3] / "README.md"


def policy_of_the_readme() -> Policy[Any, Any]:
    block = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {"__name__": "half"}
    exec(block[1], names)
    policy = names["POLICY"]
    assert isinstance(policy, Policy)
    return policy


@pytest.mark.parametrize(
    ("millis", "share"), [(2000, 6), (8000, 8), (24_000, 16)], ids=["2", "8", "24 cores asked for"]
)
def test_the_policy_of_the_readme_sizes_pools(sample: MakeSample, pod: MakePod, millis: int, share: int) -> None:
    policy = policy_of_the_readme()
    view = view_of(sample(pod("web", cpu_millis=millis, cpu_usage_cores=0.1)), Bounds.of(48, smt=True))
    fields = decide(view, 0.0, ConfiguredPolicy(policy, policy.settings()), SizingRules(), None).fields()
    assert {p.pool: p.cpus for p in fields["pools"]}["share"] == share
