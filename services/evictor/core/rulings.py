"""Rules how an intent of the node continues, from the state of its pod and its pressure right before each call."""

from services.evictor.core.arbiter.confirmation import Evidence
from shared.contracts.eviction import EvictionIntent
from shared.core.evictions.intents import Call
from shared.core.evictions.rulings import Ruling

PAUSED = "evictions are paused on this node"
OBSERVED = "the mode of this node is observe"
RELIEVED = "the pressure has gone before the eviction began"
REHEARSED = "dry run: the pod would be evicted"


def too_late(intent: EvictionIntent) -> Ruling:
    """The end of an intent whose time to begin is over."""
    return Ruling("cancelled", f"not begun within {intent.deadline_s:g} s")


def called_off(intent: EvictionIntent, paused: str, *, observes: bool) -> Ruling | None:
    """Return the end of an intent that an operator has stopped; None otherwise.

    `paused` says why evictions are paused, or is empty; a node that only observes still rehearses.
    """
    if paused:
        return Ruling("cancelled", f"{PAUSED}: {paused}")
    return Ruling("cancelled", OBSERVED) if observes and intent.mode == "enforce" else None


def before_dry_run(standing: str, stopped: Ruling | None, evidence: Evidence) -> Ruling | None:
    """Return what forbids a rehearsal; None: it is made. `stopped` is the result of `called_off`."""
    # A pod that is on its way out anyhow relieves as much, and a call would only use up a disruption budget.
    if standing in ("gone", "terminating"):
        return Ruling("cancelled", f"the pod was {standing} before its eviction began")
    if stopped is not None:
        return stopped
    if evidence == "against":
        return Ruling("cancelled", RELIEVED)
    # Anything less is not known: wait and look again until the deadline, but never act on a guess.
    return None if standing == "running" and evidence == "for" else Ruling()


def after_dry_run(intent: EvictionIntent, call: Call, *, expired: bool) -> Ruling | None:
    """Return what forbids the call after an accepted rehearsal; None: it is made."""
    # The dry run is the last step of a rehearsal.
    if intent.mode != "enforce":
        return Ruling("cancelled", REHEARSED, (call,))
    # The dry run itself may have taken up to the call's time limit.
    return too_late(intent) if expired else None


def while_settling(standing: str, evidence: Evidence, *, expired: bool) -> Ruling:
    """Return what follows a call with an unknown outcome; only a pod that still runs is evicted again.

    `expired`: whether the deadline had passed when the pod was looked up.
    """
    calls = (Call("lookup", standing),)
    # Whatever made it leave, an eviction of this UID needs no second call.
    if standing in ("gone", "terminating"):
        return Ruling("accepted", calls=calls)
    # However long it takes: an API server that does not answer proves nothing.
    if standing == "unknown":
        return Ruling()
    # `failed` and not `cancelled`: a call was made, and may still take effect.
    if expired:
        detail = f"the outcome of the call is not known and the pod is {standing} after the deadline"
        return Ruling("failed", detail, calls)
    if evidence == "missing":
        return Ruling()
    return Ruling("cancelled", RELIEVED, calls) if evidence == "against" else Ruling("requested", calls=calls)
