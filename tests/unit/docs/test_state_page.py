"""docs/state.md says the bounds and the lifetimes that the code has."""

import inspect
from pathlib import Path

import pytest

from services.evictor.settings import EvictorSettings
from shared.adapters.ledger import upkeep
from shared.adapters.ledger.file import KEEP_BROKEN
from shared.adapters.local.log_times import MAX_PREVIOUS_BYTES
from shared.adapters.local.pods import KEEP_FINISHED
from shared.adapters.nats.config import HISTORY
from shared.adapters.nats.embedded.server import MAX_STORE_BYTES
from shared.contracts.bus.subjects import DAY_S, DEAD_LETTERS_STREAM, EVENTS_STREAM, INTENTS_STREAM, STREAMS
from sublet.bridge.position import DEAD_BYTES
from sublet.commands.record import record
from sublet.host.capped_logs import MAX_LOG_BYTES, MAX_POD_LOG_BYTES
from sublet.state.files import STATE_FILES, Until, known
from sublet.state.old_place import OLD_STATE_DIR

PAGE = Path(__file__).parents[3] / "docs/state.md"
SPECS = {spec.name: f"{spec.max_age_s / DAY_S:g} days, {spec.max_bytes >> 20} MiB" for spec in STREAMS}


def row(first: str) -> str:
    """The rest of the one row of a table that begins so."""
    (found,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {first} |")]
    return found


@pytest.mark.parametrize(
    ("first", "bounds"),
    [
        ("ledger", [f"{EvictorSettings().ledger_max_bytes >> 20} MiB", f"{upkeep.KEEP_INTENTS} ended",
                    f"{upkeep.KEEP_REFUSALS} refusals", f"{upkeep.KEEP_NEWEST} acknowledged messages of a day"]),
        ("broken ledgers set aside", [str(KEEP_BROKEN)]),
        ("events", [SPECS[EVENTS_STREAM]]),
        ("intents", [SPECS[INTENTS_STREAM]]),
        ("given up deliveries", [SPECS[DEAD_LETTERS_STREAM]]),
        ("configuration", [f"{HISTORY} revisions"]),
        ("all streams of the server of `sublet up`", [f"{MAX_STORE_BYTES >> 30} GiB"]),
        ("log of a service", [f"{MAX_LOG_BYTES >> 20} MiB"]),
        ("log of a container of a pod", [f"{MAX_POD_LOG_BYTES >> 20} MiB", f"{MAX_PREVIOUS_BYTES >> 20} MiB"]),
        ("pods that have ended", [f"newest {KEEP_FINISHED}"]),
        ("what a bridge could not deliver", [f"{DEAD_BYTES >> 20} MiB"]),
        ("a recording", [f"{inspect.signature(record).parameters['max_mb'].default:g} MB"]),
    ],
)  # fmt: skip
def test_a_bound_on_the_page_is_the_codes(first: str, bounds: list[str]) -> None:
    assert [bound for bound in bounds if bound not in row(first)] == []


def test_streams_fit_the_store() -> None:
    assert sum(spec.max_bytes for spec in STREAMS) < MAX_STORE_BYTES


@pytest.mark.parametrize(
    ("names", "until"),
    [
        (("ledger.db", "nats", "logs", "bridges", "evictions.paused"), Until.FORGOTTEN),
        (("policy-past.json",), Until.UNINSTALLED),
        (("config.yaml", "taints.json", "ledger.db.broken-1", "checkpoint.json.refused"), Until.REMOVED_BY_HAND),
        (("pods", "checkpoint.json", "lease.json", "lease.fallen", "cnr.json", "login.json"), Until.STOP),
    ],
)
def test_lifetimes_on_the_page_are_those_of_the_list(names: tuple[str, ...], until: Until) -> None:
    assert {one.until for name in names if (one := known(name)) is not None} == {until}
    assert all(known(name) for name in names)
    assert {one.until for one in STATE_FILES} == set(Until)


def test_the_old_place_is_named() -> None:
    assert f"`{OLD_STATE_DIR}`" in PAGE.read_text()
