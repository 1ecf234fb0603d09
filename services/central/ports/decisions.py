"""Where controllers say what they decided."""

from typing import Protocol

from shared.contracts.cluster.decision import Decided


class DecisionLog(Protocol):
    """Takes decisions for everybody who asks why: `sublet explain`, subscribers, recordings.

    Who decides says it each time, and never waits: what was said just now is not said again, and a flood is cut.
    """

    def say(self, decided: Decided) -> None:
        """Say it soon, or not at all. Never raises."""
        ...
