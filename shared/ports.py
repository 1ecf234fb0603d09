"""What the services need from outside, as protocols. Adapters implement them; only a service's `main` builds one.

Each port has a real adapter in `shared/adapters`, a fake in `shared/fakes` if unit tests need one, and one contract
suite in `tests/contract` that runs on both.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from shared.core.api_kind import ApiKind
from shared.core.bus.stream_room import Cut

if TYPE_CHECKING:
    # Only for types: users of a port need not load every message.
    from shared.contracts.bus.subjects import StreamSpec
    from shared.contracts.kube.taint import Taint
    from shared.contracts.pod import Pod


class Clock(Protocol):
    """Time. Decisions get it as an argument; apps ask the clock; wall time is for people only."""

    def monotonic(self) -> float:
        """Seconds that never go back; for ages, rates and deadlines."""
        ...

    def wall(self) -> datetime:
        """Now in UTC, for people and logs."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


@dataclass(frozen=True, slots=True)
class Received:
    """A message as it came from the bus. `sequence` is its stream sequence, 0 for core NATS."""

    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class DurableMessage:
    """A message to be stored in a stream: what is sent, and how the server knows a repetition and a conflict."""

    subject: str
    data: bytes
    msg_id: str
    """The stream drops another message with this id, whoever sends it, within its window for repetitions."""
    headers: Mapping[str, str] = field(default_factory=dict)
    expect_last_subject_seq: int | None = None
    """Refuse it where another sequence is the subject's last one; 0: nothing may be there yet."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Acknowledgement of a durable publish: which stream keeps it, where, and whether it was there before."""

    stream: str
    sequence: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of a configuration bucket; `value` None means the key was deleted."""

    key: str
    value: bytes | None
    revision: int


class Subscription(Protocol):
    """A live subscription."""

    async def stop(self) -> None:
        """No further call to the handler after this returns."""
        ...


class Bus(Protocol):
    """The message bus: core (lossy, newest wins), durable (acknowledged), configuration, request and reply.

    Handlers are plain functions that must return at once (store and wake a task): a slow handler loses messages.
    """

    @property
    def connected(self) -> bool:
        """Whether a publish would leave now."""
        ...

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> bool:
        """Send and forget. While disconnected nothing is kept back for later: False, and the message is dropped."""
        ...

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        """Store a message in its stream; retries with the same id until acknowledged or the budget is spent.

        Raises:
            NotStored: no acknowledgement within the budget; the outcome is unknown, try again with the same id.
            Conflict: `expect_last_subject_seq` is not the subject's last sequence.
            IdTaken: dropped as a repetition, and what the stream holds under this id is another message.
        """
        ...

    async def subscribe(self, subject: str, handler: Callable[[Received], None]) -> Subscription:
        """Every message on a subject (wildcards allowed) from now on."""
        ...

    async def replay(self, stream: str, subject: str, *, last_per_subject: bool = False) -> Sequence[Received]:
        """Return what a stream holds now for a subject filter, in order; empty if the stream does not exist.

        Raises:
            Unavailable: the stream cannot be read now.
        """
        ...

    def follow(self, stream: str, subject: str, *, from_sequence: int = 1) -> AsyncIterator[Received]:
        """The stream from a sequence on, then live, for as long as the caller iterates; survives reconnects."""
        ...

    async def ensure_stream(self, spec: "StreamSpec") -> None:
        """Create a stream, or bring its limits to the specification."""
        ...

    async def make_room(self, spec: "StreamSpec") -> Sequence[Cut]:
        """Drop and report messages that make room in a nearly full stream (`shared.core.bus.stream_room`).

        Raises:
            Unavailable: the server cannot be asked.
        """
        ...

    async def ensure_bucket(self, bucket: str, *, replicas: int | None = None) -> None:
        """Create a configuration bucket if it is missing; `replicas` None leaves them unchanged, one at first."""
        ...

    async def put(self, bucket: str, key: str, value: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Write a configuration value; return its revision. Headers are stored with it, for readers of the history."""
        ...

    async def get(self, bucket: str, key: str) -> Entry | None:
        """Read a configuration value; None where bucket or key does not exist."""
        ...

    async def watch(
        self, bucket: str, handler: Callable[[Entry], None], *, keys: Sequence[str] | None = None
    ) -> Subscription:
        """Deliver current values, then every change; wait for a bucket that does not exist yet.

        With `keys` only these are read, and of rapid changes perhaps only the last is delivered.
        """
        ...

    async def serve(self, subject: str, answer: Callable[[bytes], bytes]) -> Subscription:
        """Answer requests on a subject."""
        ...

    async def request(self, subject: str, data: bytes = b"", *, timeout_s: float = 2.0) -> bytes:
        """Send a request to another client and wait for the answer.

        Raises:
            Unavailable: no answer on that subject within the time.
        """
        ...

    async def wait_closed(self) -> str:
        """Return the reason once the client is closed permanently; the process must then end."""
        ...

    async def drain(self) -> None:
        """Deliver what was received, send what was published, then close."""
        ...


class PodSource(Protocol):
    """The pods of this node."""

    def pods(self) -> "Sequence[Pod]":
        """All pods that hold resources here now, ascending by namespace/name.

        Raises:
            Unavailable: the list cannot be read; never an empty list in that case (absent is not zero).
        """
        ...

    def generation(self) -> int:
        """A number that changes whenever `pods` might answer differently; cheap to ask."""
        ...


Outcome = Literal["accepted", "gone", "wait", "refused", "failed", "unknown"]
Document = Mapping[str, object]
Check = Callable[[], None]
Standing = Literal["running", "terminating", "gone", "unknown"]


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The outcome of one eviction call: accepted (under way), gone (no such UID any more), wait (budget), …."""

    outcome: Outcome
    detail: str = ""


class EvictionActuator(Protocol):
    """The one door through which a pod is evicted. Every call carries the UID; a successor of the name is safe."""

    async def lookup(self, pod: "Pod") -> Standing:
        """Return the current state of this very UID, read fresh."""
        ...

    async def evict(
        self, pod: "Pod", *, grace_s: float, dry_run: bool = False, why: str = "", last_check: Check = lambda: None
    ) -> ActionResult:
        """Begin the eviction of this very UID; idempotent. With `dry_run` only say what would happen.

        `why`: a sentence for the pod's owner. `last_check` is called behind all lookups, and raises to call it off.
        """
        ...


class NodeWriter(Protocol):
    """Where the reporter writes the node's objects: a file on one host, the API server in a cluster."""

    async def write(self, document: Document, latest: Callable[[], Document] | None = None) -> None:
        """Replace the node's object (CNR form) as a whole; `latest` makes it anew for later requests of one write.

        Raises:
            Unavailable: it could not be written; the last one stays.
        """
        ...


class NodeTaints(Protocol):
    """The node's taints under our prefix (`spec.taints` of the Node); those of others are neither shown nor touched."""

    async def read(self) -> "tuple[Taint, ...]":
        """Ours, ascending by key and effect; without their causes where the substrate has no place for them.

        Raises:
            Unavailable: they cannot be read; never an empty answer in that case (absent is not zero).
        """
        ...

    async def write(self, taints: "Sequence[Taint]") -> None:
        """Let exactly these be ours; all others stay as they are.

        Raises:
            Unavailable: they could not be written; the last ones stay.
            Refused: a taint that is not under our prefix; nothing is written.
        """
        ...

    async def show(self, taints: "Sequence[Taint]") -> None:
        """Copy these taints into the node's object (CNR), if there is one; others' entries there stay.

        Raises:
            SubletError: they could not be written; the taints on the Node are not affected.
        """
        ...


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ObjectMirror(Protocol[T_co]):
    """A collection of the API server, kept up to date while `run` runs."""

    @property
    def objects(self) -> Mapping[str, T_co]:
        """Return what is kept of each object, by UID.

        Raises:
            Unavailable: it was never listed (absent is not zero).
        """
        ...

    @property
    def unread(self) -> Mapping[str, str]:
        """Objects that cannot be read, by UID, and why; what was known of them before stays."""
        ...

    @property
    def age_s(self) -> float | None:
        """Return the seconds since the server's last message about this collection; None before that."""
        ...

    @property
    def why(self) -> str:
        """Why the newest try failed; "" while it works."""
        ...

    async def run(self) -> None:
        """Work until cancelled; trouble is waited out."""
        ...


Keep = Callable[[Mapping[str, Any]], T | None]


class Objects(Protocol):
    """Objects of the API server as documents. Every call may raise `Unavailable`: then it may have been done or not."""

    def mirror(
        self,
        kind: ApiKind,
        keep: Keep[T],
        changed: Callable[[], None],
        *,
        labels: str = "",
        namespace: str = "",
    ) -> ObjectMirror[T]:
        """A mirror of a collection, in all namespaces or one; `keep` maps a document to what is kept (None: not)."""
        ...

    def mirror_each(self, kind: ApiKind, keep: Keep[T], each: Callable[[str, T | None], None]) -> ObjectMirror[T]:
        """Return a mirror of a whole collection, for indexes: `each` receives every change by UID, None: deleted."""
        ...

    def mirror_one(
        self, kind: ApiKind, name: str, keep: Keep[T], changed: Callable[[], None], *, namespace: str = ""
    ) -> ObjectMirror[T]:
        """Return a mirror of the one object of this name, which needs no right to any other."""
        ...

    async def list(self, kind: ApiKind, *, fields: str = "") -> Sequence[Mapping[str, Any]]:
        """Return a collection as it is now; `fields` selects (`spec.nodeName=n1`).

        Raises:
            Refused: the server refuses.
        """
        ...

    async def get(self, kind: ApiKind, name: str, namespace: str = "") -> Mapping[str, Any] | None:
        """Return one object as it is now; None if there is none.

        Raises:
            Refused: the server refuses.
        """
        ...

    async def create(self, kind: ApiKind, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create an object; its status is ignored.

        Raises:
            Conflict: there is one of that name.
            Refused: the server refuses.
        """
        ...

    async def patch(
        self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False
    ) -> Mapping[str, Any] | None:
        """Change the object's fields, or with `status` its status (a JSON merge patch); None: there is no object.

        Raises:
            Conflict: the document has a resource version, and the object has another one.
            Refused: the server refuses.
        """
        ...

    async def apply(
        self, kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
    ) -> Mapping[str, Any]:
        """Apply server-side as a field manager, by force: exactly the fields in the document are its own.

        A missing object is created, except for its status alone.

        Raises:
            Refused: the server refuses.
        """
        ...

    async def delete(self, kind: ApiKind, name: str, namespace: str = "", *, uid: str) -> None:
        """Delete the object of this UID; one that is gone, or has another UID, is left alone.

        Raises:
            Refused: the server refuses.
        """
        ...


class Past(Protocol):
    """Keeps a text for the next life of a service. Both raise `Unavailable` where that cannot be done."""

    def read(self) -> bytes | None:
        """The text of the life before; None where there was none."""
        ...

    def write(self, text: bytes) -> None:
        """Replace the text; where that fails the last one stays."""
        ...
