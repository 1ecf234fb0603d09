"""Every log line has a name that is kept, and keys that join it with events and traces."""

import importlib.util
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from shared.contracts.logs.events import LOG_EVENTS
from shared.contracts.logs.line import RESERVED
from shared.core.evictions.intents import STEPS

ROOT = Path(__file__).parents[3]


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("log_calls", ROOT / "docs/site/log_calls.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["log_calls"] = module
    spec.loader.exec_module(module)
    return module


CALLS = list(loaded().log_calls(ROOT))


def test_every_event_in_the_code_has_an_entry_and_every_entry_its_call() -> None:
    """A new line: its name and meaning go into shared/contracts/logs/events.py, then `make schemas reference`."""
    assert len(CALLS) > 150
    unknown = [call for call in CALLS if not any(fnmatchcase(event, call.event) for event in LOG_EVENTS)]
    assert unknown == [], "no entry in shared/contracts/logs/events.py"
    written = {call.event for call in CALLS}
    assert [event for event in LOG_EVENTS if not any(fnmatchcase(event, one) for one in written)] == []


def test_the_one_name_that_is_put_together_has_an_entry_for_each_step() -> None:
    assert {call.event for call in CALLS if "*" in call.event} == {"eviction.*"}
    assert {f"eviction.{step}" for step in STEPS} <= set(LOG_EVENTS)


def test_no_call_gives_a_key_that_every_line_has() -> None:
    """`event=` is even an error when the line is written: that is its first argument."""
    assert [call for call in CALLS if call.keys & RESERVED] == []


def test_ids_have_one_name_in_all_lines() -> None:
    assert [call for call in CALLS if call.keys & {"uid", "intent", "trace", "eviction_id"}] == []


def test_entries_are_sorted_and_are_sentences() -> None:
    assert list(LOG_EVENTS) == sorted(LOG_EVENTS)
    for event, meaning in LOG_EVENTS.items():
        assert re.fullmatch(r"[a-z_]+\.[a-z_]+", event)
        assert re.match(r"[A-Z`]|qrm", meaning), event
        assert meaning.endswith("."), event
