"""What a policy's own part of a round costs, with what it has learned from an hour of a restless node."""

import statistics
import time
from random import Random

from bench.rigs.report import Row
from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.registry import known_policies

PODS = 110
BOUNDS = Bounds.of(128, smt=True)
PERIOD_S = 2.0
WARM_ROUNDS, ROUNDS = 1800, 200
TARGET = "below 1 ms"


def policy_rows(*names: str) -> list[Row]:
    """A row for each of these policies."""
    return [
        Row(f"policy {name}, a round with {PODS} pods", f"{_median_ms(name):.3f} ms", ROUNDS, TARGET) for name in names
    ]


def _median_ms(name: str) -> float:
    policy, chance = known_policies()[name], Random(1)
    settings, state, spent = policy.settings(), policy.start(), []
    for number in range(WARM_ROUNDS + ROUNDS):
        view = _view(chance)
        before_ns = time.process_time_ns()
        state, _ = policy.judge(state, view, PERIOD_S * number, settings)
        spent.append((time.process_time_ns() - before_ns) / 1e6)
    return statistics.median(spent[WARM_ROUNDS:])


def _view(chance: Random) -> View:
    """Every container uses something else in each round."""
    containers = tuple(
        ContainerView(
            f"default/pod-{number}", f"uid-{number}", "main", "shared_cores", 1.0, 1 << 30,
            Figures(chance.random(), chance.random(), chance.random()), Resident(1 << 30),
        )
        for number in range(PODS)
    )  # fmt: skip
    return View(BOUNDS, containers, tenants_usage_cores=sum(c.cpu.usage_cores or 0.0 for c in containers))
