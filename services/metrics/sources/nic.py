"""Read the node's network cards: whether each has a link, and how fast it is, from `/sys/class/net`.

Only hardware counts: interfaces that the kernel creates (bridges, `veth…`, loopback) have no `device`. A card that was
switched off and a card without a cable are both down; a card whose driver has no `operstate` or `carrier` has no
figure. Virtual cards have a link but no speed.
"""

import errno
import itertools
import re

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Value
from services.metrics.core.reads.gates import Gate
from services.metrics.core.source import Host, Source

MOST_CARDS = 64
"""A card can be cut into hundreds of virtual functions, and each would be in every sample."""
_FOLDER = "sys/class/net"
_NAME = re.compile(r"[\x21-\x7e]{1,15}")
_BYTES_PER_MBIT = 10**6 // 8
_UNKNOWN_SPEED = 2**32 - 1
"""-1 where a driver prints it without its sign."""


def _read(host: Host, target: Target) -> dict[str, Value]:  # noqa: ARG001 - there is one node
    up = {card: link for card in _cards(host) if (link := _link(host, card)) is not None}
    speeds = {card: speed for card, link in up.items() if link and (speed := _speed(host, card)) is not None}
    return {name: by_card for name, by_card in (("nic_up", up), ("nic_speed_bytes_per_s", speeds)) if by_card}


def _cards(host: Host) -> list[str]:
    names = (name for name in host.names(_FOLDER) if _NAME.fullmatch(name) and host.exists(f"{_FOLDER}/{name}/device"))
    return list(itertools.islice(names, MOST_CARDS))


def _link(host: Host, card: str) -> int | None:
    """1 with a link, 0 without one; None where the driver does not say (kernel documentation, ABI sysfs-class-net)."""
    state = _attribute(host, card, "operstate")
    if state is None or state == "unknown":
        carrier = _attribute(host, card, "carrier")
        return int(carrier) if carrier in ("0", "1") else None
    return int(state == "up")


def _speed(host: Host, card: str) -> int | None:
    mbits = int(_attribute(host, card, "speed") or 0)
    return mbits * _BYTES_PER_MBIT if 0 < mbits < _UNKNOWN_SPEED else None


def _attribute(host: Host, card: str, name: str) -> str | None:
    """Return an attribute; None if it does not exist, or the driver has no answer now (EINVAL)."""
    try:
        text = host.record(f"{_FOLDER}/{card}/{name}")
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
    return None if text is None else text.strip()


SOURCE = Source(
    {"node": (Gauge("nic_up"), Gauge("nic_speed_bytes_per_s"))},
    _read,
    cost="dear",
    gates={"node": Gate(20.0)},  # the plugin that reads it waits for minutes
)
