"""What the checks believe of the chart is what the chart renders."""

import re
from collections.abc import Iterator
from typing import Any

import cluster_case as case
import pytest
import yaml

from services.central.settings import WebhookSettings
from sublet.doctor.cluster.api import KINDS, POLICIES
from sublet.doctor.cluster.facts import followed_config_map
from sublet.doctor.cluster.rights import GIVEN, MADE, MADE_FOR_SLO, OWN, WEBHOOK, Right, of_account

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


def template(path: str, without: re.Pattern[str] | None = None) -> Iterator[dict[str, Any]]:
    """The documents of a template of the chart, with its own values; `without` a part that is switched off."""
    text = (case.K8S / "chart/templates" / path).read_text()
    if without is not None:
        text = without.sub("", text)
    text = re.sub(r"labels: \{\{.*\}\}", "labels: {}", text)
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("{{"))
    plain = plain.replace("{{ .Values.slo.namespace }}", case.SLO.namespace)
    plain = plain.replace("{{ .Values.slo.name }}", case.SLO.name)
    yield from yaml.safe_load_all(plain.replace("{{ .Release.Namespace }}", case.SYSTEM))


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
    assert set(of_account(account, case.SYSTEM, profiles=False, slo=None)) == rights_of(account)


def test_rights_of_the_webhook_are_those_of_its_roles() -> None:
    found = {right for role in template("profiles/rights.yaml") if "rules" in role for right in role_rights(role)}
    assert set(of_account(WEBHOOK, case.SYSTEM, profiles=True, slo=None)) == found


def test_without_profiles_the_webhook_may_neither_read_them_nor_what_they_need() -> None:
    of_profiles = re.compile(
        r"^  \{\{- if \.Values\.profiles\.enabled \}\}\n.*?^  \{\{- end \}\}\n", re.MULTILINE | re.DOTALL
    )
    documents = list(template("profiles/rights.yaml", without=of_profiles))
    found = {right for role in documents if "rules" in role for right in role_rights(role)}
    assert set(of_account(WEBHOOK, case.SYSTEM, profiles=False, slo=case.SLO)) == found
    assert not {"clustercolocationprofiles", "namespaces", "priorityclasses"} & {right.resource for right in found}


def test_the_chart_tells_the_webhook_whether_profiles_are_on_where_the_doctor_reads_it() -> None:
    chart = (case.K8S / "chart/templates/profiles/deployment.yaml").read_text()
    ((container,),) = [[one] for one in case.webhook()["spec"]["template"]["spec"]["containers"]]
    (told,) = container["env"]
    assert f'{{name: {told["name"]}, value: "{{{{ .Values.profiles.enabled }}}}"}}' in chart
    assert WebhookSettings.model_validate({"profiles": "false"}).profiles is False


def test_rights_of_central_where_it_follows_koordinators_config_map_are_those_of_its_roles() -> None:
    documents = list(template("slo/rights.yaml"))
    found = {right for role in documents if "rules" in role for right in role_rights(role)}
    without = set(of_account("sublet-central", case.SYSTEM, profiles=False, slo=None))
    assert set(of_account("sublet-central", case.SYSTEM, profiles=False, slo=case.SLO)) - without == found
    made = {kind_of(document) for document in documents} - {*MADE}
    assert made == {(group, kind, case.SLO.namespace) for group, kind, _ in MADE_FOR_SLO}


def test_what_central_follows_is_read_where_the_chart_says_it() -> None:
    chart = (case.K8S / "chart/templates/central/deployment.yaml").read_text()
    for one in case.central()["spec"]["template"]["spec"]["containers"][0]["env"]:
        assert f"name: {one['name']}," in chart
    assert followed_config_map(case.central()) == case.SLO
    assert [followed_config_map(one) for one in (None, {}, case.workload("x"), case.central(slo="false"))] == [None] * 4


def test_policies_are_those_that_are_rendered() -> None:
    names = {d["metadata"]["name"] for d in rendered() if d["kind"] == "ValidatingAdmissionPolicy"}
    assert set(POLICIES) == names


def test_kinds_are_those_of_the_folder() -> None:
    assert set(KINDS) == {one["metadata"]["name"] for one in case.kinds()}
