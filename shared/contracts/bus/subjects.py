"""Subjects, streams and buckets: where the channels of `shared.contracts.bus.channels` lie on the server.

Why each kind of message travels as it does: docs/adr/0002-what-travels-how.md.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from shared.contracts.bus.channels import CHANNEL_OF, CHANNELS, DECISIONS, EVENTS, INTENTS, kept_in
from shared.contracts.cluster.decision import DecidedObject, Decision, decision_tokens
from shared.contracts.cluster.heard import MOST_SHARDS
from shared.contracts.envelope import Message
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.ids import node_token
from shared.contracts.readiness import Health, Readiness

ROOT = "sublet"
INTENTS_STREAM, EVENTS_STREAM, DECISIONS_STREAM = INTENTS, EVENTS, DECISIONS
DEAD_LETTERS_STREAM = "SUBLET_DEAD_LETTERS"
CONFIG_BUCKET = "sublet-config"
NODE_API, NODE_KV = "SUBLET.API", "SUBLET.KV"
"""At a leaf, what `$JS.API` and `$KV` are at the hub: its accounts let through what a node may ask and hear there.

Under their own names they belong to each server itself, and no leaf lets them pass.
"""
DIRECT_GET = "$JS.API.DIRECT.GET"
GLOBAL_CONFIG_KEY = "global"
CONFIG_STREAM = f"KV_{CONFIG_BUCKET}"
"""The stream that keeps the bucket, with some revisions of each key."""
PUBLISHED_AT, PUBLISHED_BY = "Sublet-At", "Sublet-By"
"""Headers of a configuration in the bucket: when it was published, by which central and from which file."""

DAY_S = 86_400.0
MAX_CONFIG_BYTES = 64 << 10
"""Of one configuration entry."""
MAX_FACT_BYTES = 32 << 10
"""Of an intent or event in its stream, headers included: one of ours has some 2 KiB."""


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A JetStream stream as central creates it: limits retention, file storage.

    Facts: docs/facts/nats.md#what-travels-how.
    """

    name: str
    subjects: tuple[str, ...]
    max_age_s: float
    max_bytes: int
    duplicate_window_s: float = 600.0
    replicas: int | None = None
    """Servers that keep it; None: one at first, and as an operator has set them since."""
    of_node: str = ""
    """Where a node publishes, its token as {}: then a full stream refuses what is new, for the senders keep it, and
    central makes room. "": a full stream drops its oldest."""
    max_message_bytes: int = -1
    max_messages: int = -1
    max_per_subject: int = -1
    """The newest so many of each subject are kept; -1: all."""

    def node_of(self, subject: str) -> str:
        """The token of the node that publishes on a subject; "" where no node does."""
        pattern, given = self.of_node.split("."), subject.split(".")
        if len(pattern) != len(given) or not subject_matches(self.of_node.replace("{}", "*"), subject):
            return ""
        return given[pattern.index("{}")]


STREAMS = (
    StreamSpec(
        INTENTS_STREAM,
        (kept_in(INTENTS).every_version,),
        max_age_s=7 * DAY_S,
        max_bytes=64 << 20,
        of_node=kept_in(INTENTS).subject(node="{}"),
        max_message_bytes=MAX_FACT_BYTES,
        max_messages=100_000,
    ),
    StreamSpec(
        EVENTS_STREAM,
        (kept_in(EVENTS).every_version,),
        max_age_s=14 * DAY_S,
        max_bytes=256 << 20,
        of_node=kept_in(EVENTS).subject(node="{}"),
        max_message_bytes=MAX_FACT_BYTES,
        max_messages=400_000,
    ),
    StreamSpec(
        DECISIONS_STREAM,
        (kept_in(DECISIONS).every_version,),
        max_age_s=DAY_S,
        max_bytes=64 << 20,
        max_message_bytes=MAX_FACT_BYTES,
        max_messages=200_000,
        max_per_subject=8,
    ),
    # Sent once by the server, without an addressee, when a durable gives an event up; some 300 bytes each.
    StreamSpec(
        DEAD_LETTERS_STREAM,
        (f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{EVENTS_STREAM}.*",),
        max_age_s=14 * DAY_S,
        max_bytes=4 << 20,
    ),
)

_STATE = {channel.message: channel.prefix for channel in CHANNELS if not channel.stream}
_SHARDS = {str(shard) for shard in range(MOST_SHARDS)}
STATE_MESSAGES: tuple[type[Message], ...] = tuple(_STATE)


def state_subject(message: type[Message], node: str) -> str:
    """Where the full-state messages of a node are published; `node` "*" is every node (for subscribers)."""
    return f"{_STATE[message]}.{node if node == '*' else node_token(node)}"


def shard_subject(shard: int | Literal["*"]) -> str:
    """Where the hub maps the heartbeats of one shard, or of any (docs/adr/0020-heartbeats-in-shards.md)."""
    return f"{_STATE[Readiness]}.{shard}.*"


def shard_of(subject: str) -> int | None:
    """The shard in which a heartbeat came; None where the hub does not divide them."""
    shard = subject.removeprefix(_STATE[Readiness]).rpartition(".")[0].removeprefix(".")
    return int(shard) if shard in _SHARDS else None


def health_subject(node: str, service: str) -> str:
    """A service's heartbeat has the service as its last token; "*" stands for any."""
    return f"{state_subject(Health, node)}.{service}"


def intent_subject(intent: EvictionIntent) -> str:
    """One subject for each pod, so that the expected-sequence check makes a second open intent impossible."""
    return CHANNEL_OF[EvictionIntent].subject(node=node_token(intent.node), pod_uid=intent.pod_uid)


def event_subject(event: EvictionEvent) -> str:
    """Phase and namespace come first: that is what subscribers filter on."""
    return CHANNEL_OF[EvictionEvent].subject(
        phase=event.phase, namespace=event.namespace.replace(".", "_"), node=node_token(event.node)
    )


def event_filter(*, phase: str = "*", namespace: str = "*", node: str = "*") -> str:
    """A subscriber's filter over eviction events."""
    token = node if node == "*" else node_token(node)
    return CHANNEL_OF[EvictionEvent].subject(phase=phase, namespace=namespace, node=token)


def decision_subject(area: str, about: DecidedObject) -> str:
    """One subject for each object and area, so that the newest of each are kept."""
    return CHANNEL_OF[Decision].subject(**decision_tokens(area, about))


def decision_filter(kind: str = "*", namespace: str | None = None, name: str = "*") -> str:
    """A subscriber's filter over decisions of every area; without a namespace those of any, and of none."""
    tokens = {"namespace": node_token(namespace)} if namespace else {}
    return CHANNEL_OF[Decision].subject(object_kind=kind, name=name if name == "*" else node_token(name), **tokens)


def dead_letter_subject(durable: str = "*") -> str:
    """Where the server says that a durable has given an event up; "*" is every durable."""
    return f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{EVENTS_STREAM}.{durable}"


def ask_subject(node: str, service: str) -> str:
    """Where a service answers questions about its state (request and reply); "*" stands for any node or service."""
    return f"sublet.node.v1.ask.{node if node == '*' else node_token(node)}.{service}"


def admit_subject(node: str) -> str:
    """Where qrm says whether pods could run here (request and reply; `shared.contracts.admission`)."""
    return f"sublet.node.v1.admit.{node_token(node)}"


def probe_subject(boot_id: str) -> str:
    """Where central talks to itself: hearing its own voice is how it knows that it is not the one cut off."""
    return f"sublet.cluster.v1.probe.{boot_id}"


@lru_cache(maxsize=4096)
def subject_matches(pattern: str, subject: str) -> bool:
    """Whether a subject falls under a filter: `*` stands for one token, a final `>` for one or more."""
    wanted, given = pattern.split("."), subject.split(".")
    for place, part in enumerate(wanted):
        if part == ">":
            return len(given) > place
        if place >= len(given) or part not in ("*", given[place]):
            return False
    return len(wanted) == len(given)


def stream_of(subject: str) -> str | None:
    """The stream that keeps a subject, among the streams of this project."""
    return next((s.name for s in STREAMS if any(subject_matches(p, subject) for p in s.subjects)), None)
