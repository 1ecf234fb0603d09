"""Pauses of a whole cluster or of pools: central hands them to every node in one entry of the bucket of configuration.

An operator writes them into a ConfigMap, one key each, so that the cluster's own rights say who may; central reads it,
and is the only one that writes the bucket.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, Field, ValidationError

from shared.contracts.envelope import MessagePart
from shared.core.pydantic_words import first_fault
from shared.errors import Refused

PAUSES_KEY: Final = "pauses"
"""Key of the entry in the bucket."""
CONFIG_MAP: Final = "sublet-pauses"
"""The operators' object, in the namespace of the installation."""
POOL_LABEL: Final = "node.kubernetes.io/pool"
"""The label of a Node that names its pool."""
WHOLE_CLUSTER: Final = "*"
_CLUSTER_KEY, _POOL_PREFIX = "cluster", "pool."
_POOL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""A value of a label."""
MOST_PAUSES = 200
WORDS = 200
"""Characters of a reason, and of a name; two hundred pauses of them fit the bucket's bound of 64 KiB."""
UNREADABLE = "the pause cannot be read, and counts"


class PausePart(MessagePart):
    """What an operator writes under the key of one pause."""

    reason: Annotated[str, Field(max_length=WORDS)] = "no reason given"
    until: AwareDatetime | None = None
    """When it ends by itself; None: when somebody ends it."""
    by: Annotated[str, Field(max_length=WORDS)] = ""
    """Who has paused, by his own word: the API server's audit log has the proof."""


class Pause(PausePart):
    """One pause."""

    pool: Annotated[str, Field(max_length=63)]
    """The pool's name; "*": the whole cluster."""

    @property
    def words(self) -> str:
        """Why, by whom and until when, for people."""
        what = "the whole cluster" if self.pool == WHOLE_CLUSTER else f"pool {self.pool}"
        end = f", until {self.until:%Y-%m-%d %H:%M:%S %Z}" if self.until is not None else ""
        return f"{what}: {self.reason} ({f'by {self.by}' if self.by else 'by nobody who says so'}{end})"

    def holds(self, now: datetime) -> bool:
        """Whether it is not over yet."""
        return self.until is None or now < self.until


class Pauses(MessagePart):
    """The entry of the bucket."""

    pauses: Annotated[tuple[Pause, ...], Field(max_length=MOST_PAUSES)] = ()

    @classmethod
    def decode(cls, payload: bytes) -> "Pauses":
        """Read an entry.

        Raises:
            Refused: it is none.
        """
        try:
            return cls.model_validate_json(payload)
        except ValidationError as error:
            raise Refused(f"pauses: {first_fault(error, whole='entry')}", reason="malformed") from error

    def encode(self) -> bytes:
        """As the bucket keeps it."""
        return self.model_dump_json(exclude_none=True).encode()


def pause_key(pool: str) -> str:
    """Key of a pause in the ConfigMap; `pool` "*" is the whole cluster.

    Raises:
        Refused: no label can have that value.
    """
    if pool == WHOLE_CLUSTER:
        return _CLUSTER_KEY
    if not _POOL.fullmatch(pool):
        raise Refused(f"pool {pool!r}: want the value of a label, 63 letters, digits, '-', '_' or '.'", reason="option")
    return f"{_POOL_PREFIX}{pool}"


def read_pause(key: str, text: str) -> Pause | None:
    """One key of the ConfigMap; None: it names no pool. What cannot be read pauses without end: brakes fail closed."""
    pool = WHOLE_CLUSTER if key == _CLUSTER_KEY else key.removeprefix(_POOL_PREFIX)
    if key != _CLUSTER_KEY and (not key.startswith(_POOL_PREFIX) or not _POOL.fullmatch(pool)):
        return None
    try:
        said = PausePart.model_validate_json(text)
    except ValidationError:
        return Pause(pool=pool, reason=UNREADABLE)
    return Pause(pool=pool, **said.model_dump())


def read_pauses(data: Mapping[str, Any]) -> tuple[tuple[Pause, ...], tuple[str, ...]]:
    """The pauses of a ConfigMap, ascending by pool, and the keys that name none."""
    found = {key: read_pause(key, text if isinstance(text, str) else "") for key, text in sorted(data.items())}
    pauses = [pause for pause in found.values() if pause is not None]
    if len(pauses) > MOST_PAUSES:  # too many for one entry: everybody is paused, and told why
        pauses = [Pause(pool=WHOLE_CLUSTER, reason=f"{len(pauses)} pauses, at most {MOST_PAUSES} can be told apart")]
    return tuple(pauses), tuple(key for key, pause in found.items() if pause is None)


def why_paused(pauses: Sequence[Pause], pool: str | None, now: datetime) -> str:
    """Why a node of a pool does not evict, "" when it may; `pool` None: not known, and then any pool's pause counts."""
    for pause in pauses:
        if pause.holds(now) and (pool is None or pause.pool in (WHOLE_CLUSTER, pool)):
            unknown = pool is None and pause.pool != WHOLE_CLUSTER
            return f"{pause.words}{'; the pool of this node is not known' if unknown else ''}"
    return ""
