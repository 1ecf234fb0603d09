"""Is a KCC object, which declares a kind of config, accepted (docs/facts/katalyst-cluster.md#valid-kinds)."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Literal

from services.central.core.kcc.targets import AllowedKeys
from shared.core.decisions import Answer, Question, decision

Reason = Literal["Normal", "TargetTypeOverlap", "TargetTypeNotExist", "PrioritySelectorKeyInvalid"]


class Kcc(Question):
    """A KCC: its namespace and name, the resource name of its kind of config, and what selectors may ask for."""

    name: str
    target_type: str
    allowed_keys: list[AllowedKeys] = []


class KccAnswer(Answer):
    """Whether it is accepted; the message is empty when it is."""

    valid: bool
    reason: Reason
    message: str


def check_kcc(kcc: Kcc, others: Iterable[Kcc], known_types: Collection[str] | None = None) -> KccAnswer:
    """Whether a KCC is accepted beside the others, of which it may be one; without `known_types` every kind exists."""
    if known_types is not None and kcc.target_type not in known_types:
        return _refused(
            "TargetTypeNotExist", f"targetType.resource {kcc.target_type!r}: there is no such kind of config"
        )
    rivals = sorted(o.name for o in others if o.name != kcc.name and o.target_type == kcc.target_type)
    if rivals:
        return _refused(
            "TargetTypeOverlap", f"targetType.resource {kcc.target_type!r} is declared by [{' '.join(rivals)}], too"
        )
    counts = Counter(entry.priority for entry in kcc.allowed_keys)
    if doubled := sorted(priority for priority, count in counts.items() if count > 1):
        return _refused("PrioritySelectorKeyInvalid", f"duplicated priority: [{' '.join(map(str, doubled))}]")
    return KccAnswer(valid=True, reason="Normal", message="")


def _refused(reason: Reason, message: str) -> KccAnswer:
    return KccAnswer(valid=False, reason=reason, message=message)


class KccQuestion(Question):
    """A KCC, the others, and the kinds of config that exist; without a list every kind does."""

    kcc: Kcc
    others: list[Kcc]
    known_types: list[str] | None = None


@decision("kcc_valid", area="kcc", asks=KccQuestion, answers=KccAnswer)
def kcc_valid(question: KccQuestion) -> KccAnswer:
    """Is a KCC object accepted?"""
    return check_kcc(question.kcc, question.others, question.known_types)
