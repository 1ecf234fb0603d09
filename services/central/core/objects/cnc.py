"""What a node's CNC says about its configs (docs/facts/katalyst-cluster.md#what-a-cnc-says)."""

from collections.abc import Iterable

from shared.core.decisions import Answer, Question, decision


class NodeConfig(Question):
    """The config that a node's CNC points to."""

    namespace: str = "default"
    name: str
    hash: str


class ConfigEntry(NodeConfig):
    """One entry of a CNC: there is one for each kind of config."""

    type: str


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
