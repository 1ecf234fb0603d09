"""What is replayed: for each node a row of frames, each frame one sample and the time it speaks for."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import CPU_TENANTS, View
from services.advisor.core.observation.sample_view import has_no_rates, view_of
from shared.contracts.ids import NAME_PATTERN
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import SHARE

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Samples made from a trace are dated from here: a trace knows seconds, not days."""
BOOT_ID = "0" * 16
MAX_NAMED_FRAMES = 1000


@dataclass(frozen=True, slots=True)
class Frame:
    """One sample. `at_s` counts from the start of the trace."""

    at_s: float
    covers_s: float
    """The time before it that it speaks for: 0 for the first frame and after a gap of which nothing is known."""
    sample: NodeSample

    @property
    def load(self) -> "FrameLoad":
        """What is used in it."""
        return load_of(self.sample)

    @property
    def may_wait(self) -> bool:
        """Whether it may say what tenants waited for when it was recorded."""
        return True

    def view(self, bounds: Bounds) -> View:
        """What the advisor sees of it on a machine with these bounds."""
        return view_of(self.sample, bounds)

    def has_rates(self, view: View) -> bool:
        """Whether the advisor decides on it."""
        return not has_no_rates(self.sample, view)


class ReplayFrame(Protocol):
    """What a replay needs of a frame."""

    @property
    def at_s(self) -> float:
        """See `Frame`."""
        ...

    @property
    def covers_s(self) -> float:
        """See `Frame`."""
        ...

    @property
    def load(self) -> "FrameLoad":
        """See `Frame`."""
        ...

    @property
    def may_wait(self) -> bool:
        """See `Frame`."""
        ...

    def view(self, bounds: Bounds) -> View:
        """See `Frame`."""
        ...

    def has_rates(self, view: View) -> bool:
        """See `Frame`."""
        ...


@dataclass(slots=True)
class Faults:
    """What of a trace could not be used; filled while its frames are read."""

    lost_frames: int = 0
    """Frames that were begun and not finished; what would have come after them is not known."""
    refused: list[str] = field(default_factory=list)
    """A word for each frame that was refused, with its line; of the first ones only."""
    gaps_s: float = 0.0
    notes: list[str] = field(default_factory=list)
    capped_percents: int = 0
    """Percentages a little above 100 that counted as 100."""
    refused_more: int = 0
    """Frames that were refused beside those: a file of nothing else must not fill the memory."""

    @property
    def refused_frames(self) -> int:
        """How many frames were refused."""
        return len(self.refused) + self.refused_more

    def refuse(self, word: str) -> None:
        """Count a frame that was refused."""
        if len(self.refused) < MAX_NAMED_FRAMES:
            self.refused.append(word)
        else:
            self.refused_more += 1

    def add(self, other: "Faults") -> None:
        """Add those of another trace."""
        self.lost_frames += other.lost_frames
        self.refused_more += other.refused_more
        for word in other.refused:
            self.refuse(word)
        self.gaps_s += other.gaps_s
        self.capped_percents += other.capped_percents
        self.notes += other.notes


@dataclass(frozen=True, slots=True)
class Trace:
    """The frames of one node, oldest first, to be asked for once; `faults` are complete when they have ended."""

    node: str
    cpus: int
    smt: bool
    frames: Callable[[], Iterator[Frame]]
    faults: Faults = field(default_factory=Faults)
    rule: str = ""
    """How the frames were made from a trace of another kind; empty for a recording."""
    columns: Callable[[], Iterator[ReplayFrame]] | None = None
    """The same frames without samples, where they can be made without; asked for instead of `frames`."""

    def to_replay(self) -> Iterator[ReplayFrame]:
        """The frames in the quickest form."""
        return self.frames() if self.columns is None else self.columns()


@dataclass(frozen=True, slots=True)
class FrameLoad:
    """CPU use in one frame, in cores."""

    tenants_cores: float
    system_cores: float
    """What the node uses beside all of its pods; 0 where the node's use is not known."""


def load_of(sample: NodeSample) -> FrameLoad:
    """What the tenants use: the sum of their containers, and at least what the shared pods' cgroup was seen to use.

    Containers without a figure count nothing: it cannot be said that they wanted more than they had.
    """
    pool = sample.pool(SHARE)
    shared = dedicated = everybody = 0.0
    for reading in sample.pods:
        used = sum(c.cpu_usage_cores or 0.0 for c in reading.containers)
        everybody += used
        if reading.pod.qos == "shared_cores":
            shared += used
        elif reading.pod.qos in CPU_TENANTS:
            dedicated += used
    if pool and pool.cpu_usage_cores is not None:
        shared = max(shared, pool.cpu_usage_cores)
    node_cores = sample.node_reading.cpu_usage_cores
    system = 0.0 if node_cores is None else max(0.0, node_cores - everybody)
    return FrameLoad(shared + dedicated, system)


def sample_of(node: str, seq: int, at_s: float, fields: Mapping[str, Any]) -> NodeSample:
    """A sample with the envelope that every replayed sample has.

    Raises:
        pydantic.ValidationError: a field is out of bounds.
    """
    envelope = {"v": 1, "node": node, "boot_id": BOOT_ID, "seq": seq, "sent_at": EPOCH + timedelta(seconds=at_s)}
    return NodeSample.model_validate({**fields, **envelope})


def node_name(text: str) -> str:
    """A text as a node's or pod's name: lower case, everything else a dash."""
    name = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "x"
    name = name[:253].rstrip("-.")
    return name if re.fullmatch(NAME_PATTERN, name) else "x"
