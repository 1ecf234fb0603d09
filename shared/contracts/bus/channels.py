"""The table of channels: one row for each message, with its subject, its reach, its stream, and who says and hears it.

Subjects and streams (`shared.contracts.bus.subjects`), the AsyncAPI document (`shared.contracts.bus.schemas`), what a
node may do at the hub (`shared.contracts.bus.rights`), and the servers' configuration (`shared.contracts.deploy`) are
made of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.cluster.cpus import CpuMap, CpuWatch
from shared.contracts.cluster.decision import Decision
from shared.contracts.cluster.figures import PodFigures
from shared.contracts.cluster.heard import HeardRound
from shared.contracts.cluster.offer import NodeOffer
from shared.contracts.cluster.profiles import ServiceProfiles
from shared.contracts.envelope import Message
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.readiness import Health, Readiness
from shared.contracts.sample import NodeSample
from shared.contracts.services import NODE_SERVICES, SERVICES

INTENTS, EVENTS, DECISIONS = "SUBLET_INTENTS", "SUBLET_EVENTS", "SUBLET_DECISIONS"
"""Streams that keep facts."""
SUBSCRIBERS = "subscribers"
"""Whoever an operator lets read: teams, bridges, `sublet events`."""
_NEWEST_WINS = "Core NATS, full state, newest wins: a lost message costs one period, never correctness."
_TOKEN = re.compile(r"\{(\w+)\}")

TOKENS: Mapping[str, str] = {
    "node": "Node name with '.' written as '_'.",
    "central": "Name of a central's pod with '.' written as '_'.",
    "service": f"{', '.join(SERVICES[:-1])} or {SERVICES[-1]}.",
    "pod_uid": "UID of the pod.",
    "phase": "intended, created, succeeded, failed, refused or cancelled.",
    "namespace": "Namespace of the pod or object; '-' for an object that has none.",
    "area": "What decides: scheduling, overcommit, tide, recommendation, …",
    "object_kind": "Kind of the object in small letters: pod, node, …",
    "name": "Name of the object with '.' written as '_'.",
}
"""What stands in a subject in place of a word in braces."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Where one message travels; `address` is its subject, with a word in braces for each token that differs."""

    message: type[Message]
    address: str
    publishers: tuple[str, ...]
    readers: tuple[str, ...]
    stream: str = ""
    """The stream that keeps it; "": it is full state, and nobody keeps it."""
    about: str = _NEWEST_WINS

    @property
    def reach(self) -> Literal["node", "cluster"]:
        """Whether it stays on its node, or goes to the hub as well."""
        return "cluster" if self.address.split(".")[1] == "cluster" else "node"

    @property
    def of_nodes(self) -> bool:
        """Whether nodes say it; else only central and its processes do."""
        return any(service in NODE_SERVICES for service in self.publishers)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words in braces, in their order."""
        return tuple(_TOKEN.findall(self.address))

    def subject(self, **tokens: str) -> str:
        """The subject for these tokens; "*", any, for a token that is not given."""
        return _TOKEN.sub(lambda word: tokens.get(word[1], "*"), self.address)

    @property
    def prefix(self) -> str:
        """The subject as far as it is the same for all: where full state is published, without its node."""
        return self.address.partition(".{")[0]

    @property
    def every_version(self) -> str:
        """What a stream keeps: this kind of message in every major version, and whatever its subject ends in."""
        root, reach, _, kind = self.address.split(".")[:4]
        return f"{root}.{reach}.*.{kind}.>"


CHANNELS = (
    Channel(NodeSample, "sublet.node.v1.sample.{node}", ("metrics",), ("advisor", "evictor", "qrm", "reporter")),
    Channel(PoolAdvice, "sublet.node.v1.advice.{node}", ("advisor",), ("qrm",)),
    Channel(Allocation, "sublet.node.v1.alloc.{node}", ("qrm",), ("advisor", "evictor", "reporter")),
    Channel(Health, "sublet.node.v1.health.{node}.{service}", SERVICES, ("reporter",)),
    Channel(Readiness, "sublet.cluster.v1.ready.{node}", ("reporter",), ("central",)),
    Channel(HeardRound, "sublet.cluster.v1.heard.{central}", ("central",), ("central",)),
    Channel(NodeOffer, "sublet.cluster.v1.offer.{node}", ("reporter",), ("central",)),
    Channel(PodFigures, "sublet.cluster.v1.figures.{node}", ("reporter",), ("central",)),
    Channel(ServiceProfiles, "sublet.cluster.v1.profiles.{node}", ("central",), ("advisor",)),
    Channel(CpuWatch, "sublet.cluster.v1.watch.{node}", ("central",), ("reporter",)),
    Channel(CpuMap, "sublet.cluster.v1.cpus.{node}", ("reporter",), ("central",)),
    Channel(
        EvictionIntent,
        "sublet.cluster.v1.intent.{node}.{pod_uid}",
        ("evictor", "central"),
        ("evictor", "central"),
        INTENTS,
        f"JetStream stream {INTENTS}: what will be evicted, written before anything is done.",
    ),
    Channel(
        EvictionEvent,
        "sublet.cluster.v1.event.eviction.{phase}.{namespace}.{node}",
        ("evictor", "central"),
        (SUBSCRIBERS, "central"),
        EVENTS,
        f"JetStream stream {EVENTS}, CloudEvents 1.0 in binary mode: at least once, `ce-id` marks "
        "repetitions, order per pod, replay by time or sequence. Silence is no evidence: watch the heartbeat.",
    ),
    Channel(
        Decision,
        "sublet.cluster.v1.decision.{area}.{object_kind}.{namespace}.{name}",
        ("central",),
        (SUBSCRIBERS,),
        DECISIONS,
        f"JetStream stream {DECISIONS}: what was decided about an object and why, the newest few of each for a day. "
        "The same decision is not said again within a minute; under load some are left out.",
    ),
)
CHANNEL_OF: Mapping[type[Message], Channel] = {channel.message: channel for channel in CHANNELS}


def kept_in(stream: str) -> Channel:
    """The channel that a stream keeps.

    Raises:
        LookupError: it keeps none.
    """
    found = next((channel for channel in CHANNELS if channel.stream == stream), None)
    if found is None:
        raise LookupError(f"no channel is kept in {stream}")
    return found
