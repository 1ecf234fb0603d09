"""The phases of an eviction, apart from the messages that carry them: commands know them without loading a message."""

from typing import Literal

Phase = Literal["intended", "created", "succeeded", "failed", "refused", "cancelled"]
PHASES: tuple[Phase, ...] = ("intended", "created", "succeeded", "failed", "refused", "cancelled")
FINAL_PHASES: frozenset[Phase] = frozenset({"succeeded", "failed", "refused", "cancelled"})
