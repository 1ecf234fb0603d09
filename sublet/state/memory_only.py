"""Explains the cost of keeping the state in memory, to users who have chosen such a folder."""

from pathlib import Path

from shared.adapters.host.hostfs import lies_in_memory
from shared.settings import SYSTEM_STATE_DIR

COST = "a reboot loses the history of evictions, events that nobody has read yet, logs and the logins of teams"


def memory_only_words(folder: Path) -> str:
    """What is lost with a state folder, and what to do; empty where it lies on a disk."""
    if not lies_in_memory(folder):
        return ""
    return f"the state folder {folder} lies in memory: {COST}; keep it on a disk: SUBLET_STATE_DIR={SYSTEM_STATE_DIR}"
