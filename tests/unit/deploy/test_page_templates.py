"""What the chart says of the live page once it is switched on: off by default, no rights, reached by loopback alone."""

import re
from pathlib import Path

import yaml

from services.central import page
from services.central.adapters.live_page.server import HOST
from services.central.settings import PageSettings

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
TEMPLATE = (CHART / "templates/page/deployment.yaml").read_text()


def test_it_is_off_until_somebody_switches_it_on() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text())["page"]["enabled"] is False
    assert TEMPLATE.startswith("{{- if .Values.page.enabled }}")


def test_it_is_the_process_of_that_name_and_one_alone() -> None:
    assert f"command: [python, -m, {page.__name__}]" in TEMPLATE
    assert "replicas: 1" in TEMPLATE
    assert "strategy: {type: Recreate}" in TEMPLATE


def test_nobody_reaches_it_but_through_its_own_loopback() -> None:
    """Without a login, loopback is the only bound: no port of the page is named, and no Service leads to it."""
    assert HOST == "127.0.0.1"
    assert "{name: SUBLET_CENTRAL__PAGE__LOGIN, value: none}" in TEMPLATE
    assert re.findall(r"containerPort: (\d+)", TEMPLATE) == ["8080"]
    assert str(PageSettings().port) not in TEMPLATE
    assert re.findall(r"^kind: (\w+)", TEMPLATE, re.MULTILINE) == ["Deployment"]


def test_it_has_no_rights_at_the_api_server() -> None:
    assert "automountServiceAccountToken: false" in TEMPLATE
    assert "serviceAccountName" not in TEMPLATE


def test_it_reaches_the_bus_and_nodes_say_what_it_shows() -> None:
    assert re.search(r"operator: In, values: \[[^\]]*\bpage\b", (CHART / "templates/network.yaml").read_text())
    assert '"page" "offer"' in (CHART / "templates/node/settings.yaml").read_text()
