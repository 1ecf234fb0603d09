"""The node's network cards: whether each has a link, and how fast it is, from `/sys/class/net`.

Only hardware: what the kernel makes by itself (bridges, `veth…`, loopback) has no `device`. A card that has been taken
down and one without a cable are both down; one that does not say so (a driver without `operstate` or `carrier`) has no
figure. Virtual cards have a link but no speed.
"""

import errno
import os
import re

from services.metrics.core.due import Gate
from services.metrics.core.figures import Gauge, Target
from services.metrics.core.values import Value
from services.metrics.host import Host, Source
from shared.adapters.host.hostfs import read_record

MOST_CARDS = 64
"""A card can be cut into hundreds of virtual functions, and each would be told in every sample."""
_FOLDER = "sys/class/net"
_NAME = re.compile(r"[\x21-\x7e]{1,15}")
_BYTES_PER_MBIT = 10**6 // 8
_UNKNOWN_SPEED = 2**32 - 1
"""-1 where a driver prints it without its sign."""


def _read(host: Host, target: Target) -> dict[str, Value]:  # noqa: ARG001 - there is one node
    folder = f"{host.root}/{_FOLDER}"
    up = {card: link for card in _cards(folder) if (link := _link(f"{folder}/{card}")) is not None}
    speeds = {card: speed for card, link in up.items() if link and (speed := _speed(f"{folder}/{card}")) is not None}
    return {name: by_card for name, by_card in (("nic_up", up), ("nic_speed_bytes_per_s", speeds)) if by_card}


def _cards(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - half the cost of a Path
    except FileNotFoundError:
        return []
    cards = (name for name in names if _NAME.fullmatch(name) and os.path.lexists(f"{folder}/{name}/device"))
    return [card for card, _ in zip(cards, range(MOST_CARDS), strict=False)]


def _link(card: str) -> int | None:
    """1 with a link, 0 without one; None where the driver does not say (kernel documentation, ABI sysfs-class-net)."""
    state = _said(f"{card}/operstate")
    if state is None or state == "unknown":
        carrier = _said(f"{card}/carrier")
        return int(carrier) if carrier in ("0", "1") else None
    return int(state == "up")


def _speed(card: str) -> int | None:
    said = int(_said(f"{card}/speed") or 0)
    return said * _BYTES_PER_MBIT if 0 < said < _UNKNOWN_SPEED else None


def _said(path: str) -> str | None:
    """An attribute; None where it is not there, or the driver has no answer to it now (EINVAL)."""
    try:
        text = read_record(path)
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
