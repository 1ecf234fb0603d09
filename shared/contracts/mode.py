"""How far something goes, apart from the messages that say it: commands know the words without loading a message."""

from typing import Literal

Mode = Literal["observe", "dry-run", "enforce"]
NodeMode = Literal["observe", "enforce"]
"""The switch above all modes: while a node observes, nothing on it goes beyond a dry run."""
