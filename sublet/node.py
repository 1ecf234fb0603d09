"""`sublet node`: the five node services in one process, one event loop and one connection; the DaemonSet's default."""

from importlib import import_module

import services
from shared.adapters.process import main
from shared.app import Plan
from shared.contracts.services import NODE_SERVICES


def plan_of(service: str) -> Plan:
    """How the service of this name is built."""
    plan: Plan = import_module(f"{services.__name__}.{service}.main").PLAN
    return plan


PLANS = tuple(plan_of(service) for service in NODE_SERVICES)

if __name__ == "__main__":
    main(PLANS)
