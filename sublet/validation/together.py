"""Checks between the sections of two services, each of which checks only its own.

A node at rest is sampled less often, and its samples must still be fresh for the services that use them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from services.advisor.settings import AdvisorSettings
from services.evictor.settings import EvictorSettings
from services.metrics.settings import MetricsSettings
from shared.errors import BadConfig, SettingProblem
from shared.settings import check


def problems_together(values: Mapping[str, Any]) -> Iterator[SettingProblem]:
    """What is wrong between sections that each can be used; nothing of one that cannot, for that is said of itself."""
    try:
        metrics = check(MetricsSettings, values.get("metrics") or {}, where="metrics")
        ages_s = {
            "advisor": check(AdvisorSettings, values.get("advisor") or {}, where="advisor").max_input_age_s,
            "evictor": check(EvictorSettings, values.get("evictor") or {}, where="evictor").max_input_age_s,
        }
    except BadConfig:
        return
    seldom_s = metrics.longest_period_s
    given = values.get("metrics") or {}
    key = next((one for one in ("rest_period_s", "period_s") if given.get(one) is not None), None)
    for reader, age_s in ages_s.items():
        if seldom_s < age_s:
            continue
        bound = f"{reader}.max_input_age_s"
        if key is None:
            want = f" = {age_s:g}: want more than {seldom_s:g}, for a node at rest is sampled once in so many seconds"
            yield SettingProblem((reader, "max_input_age_s"), f"{want}; raise it, or lower metrics.rest_period_s")
        else:
            want = f" = {given[key]}: a node at rest is sampled every {seldom_s:g} s, want less than {age_s:g}"
            yield SettingProblem(("metrics", key), f"{want} ({bound}); lower it or metrics.rest_period_s")
