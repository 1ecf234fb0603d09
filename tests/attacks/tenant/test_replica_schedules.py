"""Schedules and kept bounds of an autoscaler, by whoever may write one: bounds stay sane whatever they say."""

import json
from typing import Any

from odd_documents import odd_documents, odd_texts

from services.central.core.clock_bounds.autoscaler import (
    MAX_STATUS,
    PLAIN,
    STATUS,
    AutoscalerChange,
    AutoscalerSeen,
    autoscaler_of,
    bounds_now,
    change_to,
    change_to_plain,
    change_to_refused,
)
from services.central.core.clock_bounds.replicas import LocalTime
from services.central.core.clock_bounds.schedule import MOST_REPLICAS, SCHEDULE, read_schedule
from shared.core.object_reader import ObjectReader
from shared.errors import Refused

GOOD = {
    "timeZone": "Europe/Berlin",
    "timeBounds": [
        {"start": "2026-01-01T00:00:00Z", "end": "2027-01-01T00:00:00Z",
         "bounds": [{"cronTab": "*/5 8-20 * * 1-5", "minReplicas": 2, "maxReplicas": 50}]}
    ],
}  # fmt: skip
KEPT = {"plain": {"minReplicas": 3, "maxReplicas": 20}, "written": {"minReplicas": 2, "maxReplicas": 50}}
NOW_S = 1_780_000_000.0


def seen(**annotations: str) -> AutoscalerSeen:
    found = autoscaler_of(autoscaler(annotations | {SCHEDULE: "{}"}))
    assert found is not None
    return found


def autoscaler(annotations: dict[str, str]) -> dict[str, Any]:
    meta = {"name": "web", "namespace": "shop", "uid": "1", "annotations": annotations}
    return {"metadata": meta, "spec": {"minReplicas": 2, "maxReplicas": 50}}


def sane(change: AutoscalerChange | None) -> None:
    if change is not None and change.bounds is not None:
        least, most = change.bounds
        assert 0 <= least <= most <= 2**31
    if change is not None:
        assert len(change.annotations.get(STATUS) or "") <= MAX_STATUS
        json.dumps(change.document(seen(), "1"))


def test_odd_schedules_are_followed_or_refused_as_a_whole() -> None:
    for name, text in odd_texts([GOOD], 600, seed=23):
        one = seen()
        try:
            schedule = read_schedule(text.decode("utf-8", "replace"))
        except Refused as refusal:
            sane(change_to_refused(one, str(refusal)))
            continue
        found = bounds_now(one, schedule, LocalTime(NOW_S, 60))
        assert 0 <= found.least <= found.most <= MOST_REPLICAS, name
        sane(change_to(one, found, "said"))


def test_odd_kept_bounds_are_taken_or_not_there() -> None:
    for _, text in odd_texts([KEPT], 400, seed=29):
        sane(change_to_plain(seen(**{PLAIN: text.decode("utf-8", "replace")})))


def test_odd_autoscalers_are_read_or_named() -> None:
    reader = ObjectReader(autoscaler_of)
    for name, document in odd_documents([autoscaler({SCHEDULE: json.dumps(GOOD)})], 400, seed=31):
        reader.read(name, document, None)
    assert reader.unread


def test_the_dearest_schedule_that_is_read_costs_little() -> None:
    bound = {"cronTab": "59 23 31 12 *", "minReplicas": 1}
    schedule = read_schedule(json.dumps({"timeBounds": [{"bounds": [bound] * 64} for _ in range(8)]}))
    found = bounds_now(seen(), schedule, LocalTime(NOW_S))
    assert found.active is None
