"""What `sublet explain` and `sublet status` say of the profile of a pod's service."""

from typing import Any

import pytest
from present import present

from sublet.views.conditions import conditions
from sublet.views.explain.brief import brief_lines
from sublet.views.explain.chain import chain
from sublet.views.explain.chain_text import lines
from sublet.views.facts import read

SERVICE = {"namespace": "shop", "name": "web", "targets": {"cpi": 1.4}, "pods": ["bb"], "kept": {"baseline": ["bb"]}}


def advisor(**over: Any) -> dict[str, Any]:
    told = {"age_s": 12.0, "in_force": True, "stale": "", "services": [SERVICE]} | over
    return {"service_profiles": told, "policy": "rama", "takes_targets": True}


def explained(answers: dict[str, Any]) -> tuple[str, str]:
    document = present(chain(read("node1", answers), [], "default", "encode"))
    return "\n".join(lines(document)), "\n".join(brief_lines(document))


def test_the_target_in_force_and_where_it_is_from_are_named(answers: dict[str, Any]) -> None:
    answers["advisor"] = advisor()
    long, brief = explained(answers)
    assert "    service profile shop/web, told 12 s ago\n" in long
    assert "      nothing is lent of what it asked for (baseline)\n      cpi at most 1.4\n" in long
    assert "service    shop/web, told 12 s ago; nothing is lent" in brief
    answers["advisor"] |= {"takes_targets": False, "policy": "adaptive"}
    assert "cpi at most 1.4; not used, policy adaptive has no targets" in explained(answers)[0]


def test_what_is_stale_is_not_in_force_and_a_condition(answers: dict[str, Any]) -> None:
    why = "ServiceProfilesStale: central told of the services of 1 pods 400 s ago"
    answers["advisor"] = advisor(age_s=400.0, in_force=False, stale=why)
    long, _ = explained(answers)
    assert "shop/web, told 400 s ago: too long ago, the node's own settings hold" in long
    assert "cpi" not in long
    assert ("ServiceProfilesStale", why.partition(": ")[2]) in conditions(read("node1", answers))


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"service_profiles": None},
        advisor(services=[SERVICE | {"pods": [], "kept": {}}]),
        advisor(services=[{"namespace": "shop"}]),
        advisor(services="all"),
        advisor(age_s="x"),
    ],
)
def test_of_a_pod_without_one_and_of_a_broken_answer_nothing_is_said(
    answers: dict[str, Any], answer: dict[str, Any]
) -> None:
    answers["advisor"] = answer
    long, brief = explained(answers)
    assert "service" not in long
    assert "service" not in brief
    assert not [kind for kind, _ in conditions(read("node1", answers)) if kind.startswith("Service")]
