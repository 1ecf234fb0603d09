"""The systems that a migration can start from, by their word on the command line."""

from collections.abc import Callable, Mapping, Sequence

from sublet.migrate.plan.katalyst import plan_katalyst
from sublet.migrate.plan.koordinator import plan_koordinator
from sublet.migrate.plan.line import MigrationPlan
from sublet.migrate.plan.objects import ClusterObject

Planner = Callable[[Sequence[ClusterObject]], MigrationPlan]
PLANNERS: Mapping[str, Planner] = {"koordinator": plan_koordinator, "katalyst": plan_katalyst}
