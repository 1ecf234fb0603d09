"""`claim_state` takes the state folder for one run, and reports what happened to its contents."""

from collections.abc import Callable
from pathlib import Path

from shared.settings import SYSTEM_STATE_DIR
from sublet.state.folder import StateFolder
from sublet.state.memory_only import memory_only_words
from sublet.state.old_place import OLD_STATE_DIR, bring_history


def claim_state(path: Path, say: Callable[[str], None]) -> StateFolder:
    """Bring the history of an earlier version, then hold the folder; `say` gets a line for each thing that was done.

    Raises:
        Unfit, Conflict: as `bring_history` and `StateFolder.claim`.
    """
    # Only to the folder that took the old one's place: whoever names another one by hand means that alone.
    if path == SYSTEM_STATE_DIR and (moved := bring_history(OLD_STATE_DIR, path)):
        say(moved)
    folder = StateFolder.claim(path)
    if cost := memory_only_words(path):
        say(cost)
    if folder.rebooted:
        say("this machine has started anew since: what ran then is over; the history of evictions stays")
    return folder
