"""Health of one service, and Readiness: the node's heartbeat, folded from its services."""

from typing import ClassVar

from shared.contracts.envelope import Amount, Message, Part


class ServiceHealth(Part):
    """One service as it sees itself. `ok` false means: alive, but its input or its work is not as it should be."""

    service: str
    ok: bool
    why: str = ""
    input_age_s: Amount | None = None
    """Age of the newest usable input by the service's own monotonic clock; None: none yet."""


class Health(Message):
    """A service's own heartbeat; stays on the node."""

    kind: ClassVar[str] = "health"

    health: ServiceHealth


class Readiness(Message):
    """The node's heartbeat to central. A service not heard of is listed with ok false, never left out."""

    kind: ClassVar[str] = "ready"

    ready: bool
    services: tuple[ServiceHealth, ...] = ()
