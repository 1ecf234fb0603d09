"""What the checks believe of the chart is what the chart renders."""

import re
from collections.abc import Iterator
from typing import Any

import cluster_case as case
import pytest
import yaml

from sublet.doctor.cluster.api import KINDS, POLICIES
from sublet.doctor.cluster.rights import GIVEN, MADE, OWN, WEBHOOK, Right, of_account

FILES = ("base", "overlays/default", "overlays/ha", "overlays/demo", "uninstall")
PLURALS = {"NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses"}
FROM_ELSEWHERE = {("", "secrets", OWN), ("", "namespaces", "")}
"""Of kustomize's generator, of a hand, and of Helm, which keeps its releases in Secrets."""
ONLY_WHERE_SERVED = {("admissionregistration.k8s.io", f"mutatingadmission{kind}", "") for kind in
                     ("policies", "policybindings")}  # fmt: skip


def rendered() -> Iterator[dict[str, Any]]:
    for folder in FILES:
        for path in sorted((case.K8S / folder).glob("*.yaml")):
            if path.name != "kustomization.yaml":
                yield from filter(None, yaml.safe_load_all(path.read_text()))


def kind_of(document: dict[str, Any]) -> tuple[str, str, str]:
    kind, group = document["kind"], document["apiVersion"].rpartition("/")[0]
    plural = PLURALS.get(kind, kind.removesuffix("y") + "ies" if kind.endswith("Policy") else f"{kind}s").lower()
    namespace = document["metadata"].get("namespace", "")
    return (group, plural, OWN if namespace == case.SYSTEM else namespace)


def rights_of(account: str) -> set[Right]:
    """By the roles that are rendered for an account."""
    found = set()
    for document in rendered():
        if document["kind"] in ("ClusterRole", "Role") and document["metadata"]["name"].startswith(account):
            found |= role_rights(document)
    return found


def role_rights(role: dict[str, Any]) -> set[Right]:
    """What a role gives."""
    namespace = role["metadata"].get("namespace", "")
    return {
        Right(verb, group, resource, namespace, name)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def test_every_object_of_the_chart_is_among_those_that_who_installs_must_be_able_to_make() -> None:
    assert {kind_of(document) for document in rendered()} | FROM_ELSEWHERE == {*MADE} - ONLY_WHERE_SERVED - {
        ("apiextensions.k8s.io", "customresourcedefinitions", "")
    }


@pytest.mark.parametrize("account", sorted(GIVEN))
def test_rights_of_an_account_are_those_of_its_roles(account: str) -> None:
    assert set(of_account(account, case.SYSTEM)) == rights_of(account)


def test_rights_of_the_webhook_are_those_of_its_roles() -> None:
    text = re.sub(r"labels: \{\{.*\}\}", "labels: {}", (case.K8S / "chart/templates/profiles/rights.yaml").read_text())
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("{{"))
    roles = yaml.safe_load_all(plain.replace("{{ .Release.Namespace }}", case.SYSTEM))
    found = {right for role in roles if "rules" in role for right in role_rights(role)}
    assert set(of_account(WEBHOOK, case.SYSTEM)) == found


def test_policies_are_those_that_are_rendered() -> None:
    names = {d["metadata"]["name"] for d in rendered() if d["kind"] == "ValidatingAdmissionPolicy"}
    assert set(POLICIES) == names


def test_kinds_are_those_of_the_folder() -> None:
    assert set(KINDS) == {one["metadata"]["name"] for one in case.kinds()}
