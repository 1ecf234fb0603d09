"""How an intent of the node goes on, by all that can be seen right before a call."""

from datetime import UTC, datetime

import pytest

from services.evictor.core.arbiter.confirmation import Evidence
from services.evictor.core.rulings import after_dry_run, before_dry_run, called_off, while_settling
from shared.contracts.eviction import EvictionIntent
from shared.contracts.ids import intent_id
from shared.contracts.mode import Mode
from shared.core.evictions.intents import Call, Step
from shared.core.evictions.rulings import Ruling

STAYS = Ruling()
RELIEVED = Ruling("cancelled", "the pressure has gone before the eviction began")
BRAKE = Ruling("cancelled", "evictions are paused on this node: by hand")


def intent(mode: Mode = "enforce") -> EvictionIntent:
    return EvictionIntent(
        node="n1", boot_id="0" * 16, seq=1, sent_at=datetime.now(UTC), config_rev=0,
        intent_id=intent_id("n1", "a1", "cpu_load", 1), namespace="default", pod="large", pod_uid="a1",
        qos="reclaimed_cores", plugin="cpu_load", scope="node", episode=1, mode=mode,
    )  # fmt: skip


def going(standing: str) -> Ruling:
    return Ruling("cancelled", f"the pod was {standing} before its eviction began")


@pytest.mark.parametrize(
    ("standing", "stopped", "evidence", "ruling"),
    [
        ("running", None, "for", None),
        ("running", None, "missing", STAYS),
        ("running", None, "against", RELIEVED),
        ("running", BRAKE, "for", BRAKE),
        ("running", BRAKE, "against", BRAKE),
        ("unknown", None, "for", STAYS),
        ("unknown", None, "missing", STAYS),
        ("unknown", None, "against", RELIEVED),
        ("unknown", BRAKE, "for", BRAKE),
        ("terminating", None, "for", going("terminating")),
        ("terminating", BRAKE, "against", going("terminating")),
        ("gone", None, "missing", going("gone")),
        ("gone", BRAKE, "for", going("gone")),
    ],
)
def test_a_rehearsal_needs_a_running_pod_and_its_pressure(
    standing: str, stopped: Ruling | None, evidence: Evidence, ruling: Ruling | None
) -> None:
    assert before_dry_run(standing, stopped, evidence) == ruling


def test_a_call_follows_an_accepted_rehearsal_in_time_and_in_earnest() -> None:
    call = Call("dry-run", "accepted")
    assert after_dry_run(intent(), call, expired=False) is None
    assert after_dry_run(intent(), call, expired=True) == Ruling("cancelled", "not begun within 60 s")
    for expired in (False, True):
        rehearsed = Ruling("cancelled", "dry run: the pod would be evicted", (call,))
        assert after_dry_run(intent("dry-run"), call, expired=expired) == rehearsed


@pytest.mark.parametrize(
    ("mode", "paused", "observes", "ruling"),
    [
        ("enforce", "", False, None),
        ("enforce", "by hand", False, BRAKE),
        ("enforce", "by hand", True, BRAKE),
        ("enforce", "", True, Ruling("cancelled", "the mode of this node is observe")),
        ("dry-run", "", True, None),
        ("dry-run", "by hand", True, BRAKE),
    ],
)
def test_a_pause_ends_every_intent_and_a_node_that_observes_those_in_earnest(
    mode: Mode, paused: str, observes: bool, ruling: Ruling | None
) -> None:
    assert called_off(intent(mode), paused, observes=observes) == ruling


@pytest.mark.parametrize(
    ("standing", "evidence", "expired", "step"),
    [
        ("gone", "against", True, "accepted"),
        ("terminating", "missing", False, "accepted"),
        ("running", "for", True, "failed"),
        ("unknown", "against", True, None),
        ("running", "for", False, "requested"),
        ("running", "against", False, "cancelled"),
        ("running", "missing", False, None),
        ("unknown", "for", False, None),
        ("unknown", "against", False, None),
    ],
)
def test_after_a_call_of_unknown_outcome_only_a_pod_that_still_runs_is_evicted_again(
    standing: str, evidence: Evidence, expired: bool, step: Step | None
) -> None:
    ruling = while_settling(standing, evidence, expired=expired)
    assert ruling.step == step
    assert ruling.calls == (() if step is None else (Call("lookup", standing),))
