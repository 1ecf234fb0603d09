"""What a pod may say of its QoS class, in both dialects, and what it is taken for: one table for agent and admission.

Rows are values of the annotation, columns of Koordinator's label. A letter is the class; a mark after it says that such
a pod is not clear and may not be made. Whoever has it already is taken for the lowest that is named.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, QosClass
from shared.core.pods.koord_qos import BINDS_CPUS, QOS_LABEL
from shared.core.pods.qos import QOS_LEVEL

ABSENT, EMPTY = "-", "''"
GRID = """
                 -   LS  LSR LSE BE  SYSTEM LSX ''
-                s   s   d   d   r   y      s!  s!
shared_cores     s   s!  s!  s!  r!  s!     s!  s!
dedicated_cores  d   s!  d!  d!  r!  d!     s!  s!
reclaimed_cores  r   r!  r!  r!  r!  r!     r!  r!
system_cores     y   s!  d!  d!  r!  y!     s!  s!
gold             s!  s!  s!  s!  r!  s!     s!  s!
''               s!  s!  s!  s!  r!  s!     s!  s!
"""
CLASSES: dict[str, QosClass] = {
    "s": "shared_cores", "d": "dedicated_cores", "r": "reclaimed_cores", "y": "system_cores",
}  # fmt: skip
PERMITTED = {"dedicated_cores": "sublet.io/dedicated-cores", "system_cores": "sublet.io/system-cores"}
"""The label of a namespace whose pods may have the class."""
NATIVE = {"cpu": "100m", "memory": "64Mi"}
WHOLE = {"cpu": "1", "memory": "64Mi"}
RECLAIMED = {RECLAIMED_CPU: "100", RECLAIMED_MEMORY: str(64 << 20)}


@dataclass(frozen=True)
class Claim:
    """Words, the class that they come to, and whether they are clear enough for a new pod."""

    annotations: dict[str, str] = field(hash=False)
    labels: dict[str, str] = field(hash=False)
    qos: QosClass
    clear: bool
    name: str

    @property
    def amounts(self) -> dict[str, str]:
        """What a container of such a pod asks for."""
        if self.labels.get(QOS_LABEL) in BINDS_CPUS:
            return WHOLE
        return RECLAIMED if self.qos == "reclaimed_cores" else NATIVE

    def document(self, name: str, amounts: dict[str, str] | None = None) -> dict[str, Any]:
        """A pod that says so, and asks for what its class asks for."""
        asked = self.amounts if amounts is None else amounts
        resources = {"requests": asked, "limits": asked}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": self.annotations, "labels": self.labels},
            "spec": {"containers": [{"name": "main", "image": "none.example/none", "resources": resources}]},
        }


def _word(key: str, text: str) -> dict[str, str]:
    return {} if text == ABSENT else {key: text if text != EMPTY else ""}


def _claims() -> Iterator[Claim]:
    head, *rows = (line.split() for line in GRID.strip().splitlines())
    for level, *cells in rows:
        for label, cell in zip(head, cells, strict=True):
            yield Claim(
                _word(QOS_LEVEL, level), _word(QOS_LABEL, label), CLASSES[cell[0]], not cell.endswith("!"),
                f"{level} and {label}",
            )  # fmt: skip


CLAIMS = tuple(_claims())
