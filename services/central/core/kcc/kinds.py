"""The check of a KCC, the object that declares a kind of config (docs/facts/katalyst-cluster.md#valid-kinds)."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from services.central.core.kcc.targets import AllowedKeys
from services.central.core.strict import StrictModel

Reason = Literal["Normal", "TargetTypeOverlap", "TargetTypeNotExist", "PrioritySelectorKeyInvalid"]


class Kcc(StrictModel):
    """A KCC: its namespace and name, the resource name of its kind of config, and what selectors may ask for."""

    name: str
    target_type: str
    allowed_keys: list[AllowedKeys] = []


@dataclass(frozen=True, slots=True)
class KccVerdict:
    """Whether a KCC is accepted; the message is empty when it is."""

    reason: Reason
    message: str

    @property
    def valid(self) -> bool:
        """Whether it is."""
        return self.reason == "Normal"


def check_kcc(kcc: Kcc, others: Iterable[Kcc], known_types: Collection[str] | None = None) -> KccVerdict:
    """Check a KCC against the others, which may include it; without `known_types` every kind exists."""
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
    return KccVerdict("Normal", "")


def _refused(reason: Reason, message: str) -> KccVerdict:
    return KccVerdict(reason, message)
