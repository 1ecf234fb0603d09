"""Where controllers say what they decided."""

from typing import Protocol

from shared.contracts.cluster.decision import Decided


class DecisionLog(Protocol):
    """Publishes decisions to everyone who asks why: `sublet explain`, subscribers, recordings.

    A controller passes every decision, and never waits: repetitions are dropped, and a flood is cut.
    """

    def say(self, decided: Decided) -> None:
        """Say it soon, or not at all. Never raises."""
        ...
