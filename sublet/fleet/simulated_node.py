"""`SimulatedNode` speaks for a node as its reporter does: lives, numbers, and the configuration that it has."""

import secrets
from datetime import datetime

from shared.contracts.bus.subjects import state_subject
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.contracts.services import NODE_SERVICES

_SEQ, _SENT_AT = 987_654_321_012, "2001-02-03T04:05:06.789012Z"
"""Stand for what differs from one heartbeat to the next, in a text that is made once."""


class SimulatedNode:
    """One node. The contract encodes a heartbeat once a life or configuration; only its number and time are new."""

    __slots__ = ("_parts", "_ready", "beat_at_s", "boot_id", "name", "revision", "seq", "silent", "subject")

    def __init__(self, name: str) -> None:
        self.name, self.subject = name, state_subject(Readiness, name)
        self.boot_id, self.seq = secrets.token_hex(8), 0
        self.revision = 0
        """Of the configuration that all of its services work with; 0: none yet."""
        self.silent = False
        """Whether it says nothing, as one whose agent is dead."""
        self.beat_at_s = float("-inf")
        """When it was last heard of, by the clock of whoever sends."""
        self._ready = True
        self._parts: tuple[bytes, bytes, bytes] | None = None

    def restart(self) -> None:
        """Begin another life: numbers start anew."""
        self.boot_id, self.seq, self._parts = secrets.token_hex(8), 0, None

    def configure(self, revision: int) -> None:
        """Work with this revision of the configuration from now on."""
        self.revision, self._parts = revision, None

    def heartbeat(self, now: datetime) -> bytes:
        """The next heartbeat, as it is sent at that time."""
        if self._parts is None:
            self._parts = self._encoded()
        self.seq += 1
        before, between, after = self._parts
        return b"%b%d%b%b%b" % (before, self.seq, between, now.isoformat().replace("+00:00", "Z").encode(), after)

    def _encoded(self) -> tuple[bytes, bytes, bytes]:
        services = tuple(
            ServiceHealth(service=service, ok=self._ready, input_age_s=0.5, config_revision=self.revision)
            for service in NODE_SERVICES
        )
        readiness = Readiness(
            node=self.name,
            boot_id=self.boot_id,
            seq=_SEQ,
            sent_at=datetime.fromisoformat(_SENT_AT),
            config_rev=self.revision,
            ready=self._ready,
            mode="enforce",
            services=services,
        )
        before, _, rest = readiness.encode().partition(str(_SEQ).encode())
        between, _, after = rest.partition(_SENT_AT.encode())
        return before, between, after
