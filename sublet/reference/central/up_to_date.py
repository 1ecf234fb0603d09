"""Whether a CNC points to a config, as Katalyst checks it (docs/facts/katalyst-cluster.md#what-a-cnc-says).

Central compares all entries of a CNC at once and writes them if they differ.
"""

from collections.abc import Iterable

from services.central.core.objects.cnc import ConfigEntry
from shared.whatif.decisions import Answer, Question, decision


def up_to_date(entries: Iterable[ConfigEntry], wanted: ConfigEntry) -> bool:
    """Whether one of the entries is the wanted one, hash and all."""
    return wanted in entries


class UpToDateQuestion(Question):
    """A CNC's entries, and what it should point to."""

    cnc_entries: list[ConfigEntry]
    target: ConfigEntry


class UpToDateAnswer(Answer):
    """Whether it does."""

    up_to_date: bool


@decision("config_up_to_date", area="kcc", asks=UpToDateQuestion, answers=UpToDateAnswer)
def config_up_to_date(question: UpToDateQuestion) -> UpToDateAnswer:
    """Does a node's CNC point to this config?"""
    return UpToDateAnswer(up_to_date=up_to_date(question.cnc_entries, question.target))
