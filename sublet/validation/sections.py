"""Builds each service's section of the settings as the service does when it starts or receives a configuration.

It calls the services' own functions, so that they accept whatever passes here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from services.advisor.settings import choose
from services.central.settings import CentralSettings
from services.evictor.settings import read as read_evictor
from services.metrics.settings import MetricsSettings
from services.qrm.settings import QrmSettings
from services.reporter.core.node_object import Fields
from services.reporter.registry import configured_fields
from services.reporter.settings import ReporterSettings
from shared.settings import all_of, check

Notes = tuple[str, ...]
"""What does not keep a service from starting, and still is wrong: a broken wheel."""

SOME_CPUS = 48
"""A machine for the rules that are made for one; which one does not matter."""


def build_metrics(section: Mapping[str, Any]) -> Notes:
    """Build what metrics builds."""
    check(MetricsSettings, section, where="metrics")
    return ()


def build_advisor(section: Mapping[str, Any]) -> Notes:
    """Build what the advisor builds: its policies, the one that it follows, the rules of sizing and of the offer."""
    choice, _policies = all_of(lambda: choose(section), lambda: choose(_only(section, "policy", "policies")))
    _ = choice.rules, choice.settings.offer.rules, choice.bounds(SOME_CPUS, smt=True)
    return choice.problems


def build_qrm(section: Mapping[str, Any]) -> Notes:
    """Build what qrm builds: the rules of offloading and of starts."""
    settings = check(QrmSettings, section, where="qrm")
    _ = settings.offload.rules, settings.starts.rules(SOME_CPUS)
    return ()


def build_evictor(section: Mapping[str, Any]) -> Notes:
    """Build what the evictor builds: its plugins, the rules of confirmation, the limits and budgets."""
    (settings, _found), _plugins = all_of(
        lambda: read_evictor(section), lambda: read_evictor(_only(section, "plugins"))
    )
    _ = settings.rules, settings.limits, settings.budgets.in_order
    return ()


def build_reporter(section: Mapping[str, Any]) -> Notes:
    """Build what the reporter builds: its fields."""
    all_of(lambda: _reporter_fields(section), lambda: _reporter_fields(_only(section, "fields")))
    return ()


def _reporter_fields(section: Mapping[str, Any]) -> Fields:
    return configured_fields(check(ReporterSettings, section, where="reporter"))


def build_central(section: Mapping[str, Any]) -> Notes:
    """Build what central builds: its rules, and in a cluster the labels of agents."""
    settings = check(CentralSettings, section, where="central")
    _ = settings.rules, settings.kubernetes.agent
    return ()


def _only(section: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Built once more without the rest: where another key is wrong, what is wrong in these is said as well."""
    return {key: section[key] for key in keys if key in section}


BUILDERS: Mapping[str, Callable[[Mapping[str, Any]], Notes]] = {
    "metrics": build_metrics,
    "advisor": build_advisor,
    "qrm": build_qrm,
    "evictor": build_evictor,
    "reporter": build_reporter,
    "central": build_central,
}
