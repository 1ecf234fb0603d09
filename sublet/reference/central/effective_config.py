"""The config in force on a node: what is set, over the defaults (docs/facts/katalyst-cluster.md#config-in-force)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from shared.whatif.decisions import Answer, Question, decision

Sections = dict[str, dict[str, Any] | None]


def overlaid(
    defaults: Mapping[str, Mapping[str, Any] | None], overlay: Mapping[str, Mapping[str, Any] | None]
) -> dict[str, dict[str, Any]]:
    """Every field of the overlay that is not null in place of the default, as a whole: maps are not merged."""
    found = {name: dict(fields) for name, fields in defaults.items() if fields is not None}
    for name, fields in overlay.items():
        if fields is not None:
            found.setdefault(name, {}).update({key: value for key, value in fields.items() if value is not None})
    return found


class EffectiveQuestion(Question):
    """Defaults and what is laid over them: section to field to value."""

    keeps_null: ClassVar[frozenset[str]] = frozenset({"defaults", "overlay"})

    defaults: Sections
    overlay: Sections


class EffectiveAnswer(Answer):
    """What is in force."""

    effective: dict[str, dict[str, Any]]


@decision("effective_config", area="kcc", asks=EffectiveQuestion, answers=EffectiveAnswer)
def effective_config(question: EffectiveQuestion) -> EffectiveAnswer:
    """Config in force on a node: defaults overlaid."""
    return EffectiveAnswer(effective=overlaid(question.defaults, question.overlay))
