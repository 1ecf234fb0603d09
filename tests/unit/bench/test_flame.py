"""Stacks of a sampler become shares of the parts of the agent."""

import pytest

from bench.rigs.flame import OTHER, SMALL, part_of, shares, without_small

LOOP = "run (/usr/lib/python3.11/asyncio/runners.py:118);_run_once (/usr/lib/python3.11/asyncio/base_events.py:1)"
METRICS = f"{LOOP};one (/app/services/metrics/app.py:9)"


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        (f"{METRICS};read (/app/services/metrics/sources/memory.py:3);pread (/app/shared/adapters/host/cgroup.py:4)",
         "metrics: source memory"),
        (f"{METRICS};encode (/app/shared/contracts/sample.py:3)", "metrics"),
        (f"{METRICS};publish (/app/shared/wire.py:3);on_sample (/app/services/advisor/app.py:7)", "advisor"),
        (f"{LOOP};read (/site-packages/nats/aio/client.py:2)", "connection to NATS"),
        (f"{LOOP};watch (/app/shared/adapters/kube/watch.py:2)", "clients of the API server"),
        (f"{LOOP};step (/app/shared/app.py:2)", "shared code"),
        (f"{LOOP};_run (/usr/lib/python3.11/asyncio/events.py:80)", "event loop"),
        ("worker (/usr/lib/python3.11/threading.py:1)", OTHER),
    ],
)  # fmt: skip
def test_time_is_of_the_innermost_part_on_the_stack(stack: str, part: str) -> None:
    assert part_of(stack) == part


def test_shares_add_up_and_the_largest_is_first() -> None:
    found = shares([f"{LOOP} 1", f"{METRICS} 3", f"{METRICS};deeper (/app/services/metrics/core/x.py:1) 4"])
    assert list(found.items()) == [("metrics", 7 / 8), ("event loop", 1 / 8)]


@pytest.mark.parametrize(
    "innermost",
    ["EpollSelector.select (/usr/lib/python3.11/selectors.py:468)",
     "_worker (/usr/lib/python3.11/concurrent/futures/thread.py:81)"],
)  # fmt: skip
def test_who_waits_uses_nothing(innermost: str) -> None:
    assert shares([f"{LOOP};{innermost} 900", f"{METRICS} 2"]) == {"metrics": 1.0}


def test_what_is_no_stack_is_passed_over() -> None:
    assert shares(["", "no number", f"{METRICS} x", f"{METRICS} 2"]) == {"metrics": 1.0}
    assert shares([]) == {}


def test_small_parts_are_one_row() -> None:
    found = without_small({"advisor": 0.97, "qrm": 0.02, "reporter": 0.01}, least=0.02)
    assert found == {"advisor": 0.97, "qrm": 0.02, SMALL: pytest.approx(0.01)}
    assert without_small({"advisor": 1.0}) == {"advisor": 1.0}
