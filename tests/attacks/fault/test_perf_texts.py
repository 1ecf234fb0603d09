"""Whatever the program perf says, on both of its ways: metrics goes on, and no count comes of what cannot be read."""

import json
import math
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rig_parts import until

from services.metrics.adapters.perf_stat import PerfStat
from services.metrics.core.counters import Failure, counts_by_group, failure_of
from services.metrics.settings import PerfSettings

pytestmark = [pytest.mark.attack]
GROUPS = {"a/b", "a/c"}
VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30),
    st.text(string.digits + ".-e", max_size=40),
    st.sampled_from(["<not counted>", "<not supported>", "9" * 5000, "1e999", "NaN", "-1", "0x10", "1_0", "٣"]),
)  # fmt: skip
ROW = st.fixed_dictionaries(
    {},
    optional={
        "counter-value": VALUE,
        "event": st.one_of(
            st.sampled_from(["cycles", "instructions", "cpu_core/cycles/", "cycles:u", "/" * 3000]), VALUE
        ),
        "cgroup": st.one_of(st.sampled_from(["a/b", "a/c", "a", "../../etc", "a/b/../c"]), VALUE),
        "event-runtime": VALUE,
        "pcnt-running": VALUE,
    },
)
LINE = st.one_of(
    ROW.map(json.dumps),
    st.text(max_size=200),
    st.sampled_from(
        ["[" * 100_000, '{"a":' * 5000, '{"counter-value": "' + "9" * 10_000, "\0" * 4096, "[]", '"\\ud800"']
    ),
)


@settings(max_examples=600, deadline=None)
@given(st.lists(LINE, max_size=12).map("\n".join))
@example("\n".join(["{}"] * 100_000))
@example(
    "\n".join(json.dumps({"counter-value": "9" * 20, "event": e, "cgroup": "a/b"}) for e in ("cycles", "instructions"))
)
def test_no_line_throws_and_every_count_is_a_number_of_a_group_that_was_asked_for(text: str) -> None:
    found = counts_by_group(text, GROUPS)
    if isinstance(found, Failure):
        assert found.why.isprintable()
        return
    assert found.keys() <= GROUPS | {"a"}
    assert all(0 <= value < math.inf for counts in found.values() for value in counts)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=500), st.sampled_from(["\x1b]0;x\x07" * 500, "\u202e" * 300, "\n" * 5000, "�"])))
def test_no_complaint_throws_and_what_is_shown_of_it_is_one_short_line(complaint: str) -> None:
    why = failure_of(complaint).why
    assert 0 < len(why) < 400
    assert why.isprintable()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(
        ["cat /dev/urandom | head -c 3000000", "yes '{\"cgroup\":' | head -c 3000000", "printf '\\377\\376'", "true"]
    ),
    st.sampled_from(["cat /dev/urandom | head -c 300000", "true"]),
    st.sampled_from(["exit 0", "exit 3", "kill -SEGV $$"]),
)
def test_a_program_that_writes_anything_ends_as_no_figures_and_one_reason(
    tmp_path_factory: pytest.TempPathFactory, tells: str, complains: str, ends: str
) -> None:
    program = tmp_path_factory.mktemp("perf") / "perf"
    _write(program, tells, complains, ends)
    counters = PerfStat(PerfSettings(enabled=True), "", lambda: 0.0, program=str(program))
    counters.follow(["a/b"])

    def failed() -> bool:
        counters.follow(["a/b"])
        return bool(counters.failure)

    until(failed, 60, "the program to end")
    assert counters.counts("a/b") is None
    assert counters.failure.isprintable()
    counters.close()


def _write(program: Path, tells: str, complains: str, ends: str) -> None:
    program.write_text(
        '#!/bin/sh\nwhile [ "$#" -gt 1 ]; do [ "$1" = --log-fd ] && fd=$2; shift; done\n'
        f'{{ {tells}; }} >"/proc/self/fd/$fd" 2>/dev/null\n{{ {complains}; }} >&2\n{ends}\n'
    )
    program.chmod(0o755)
