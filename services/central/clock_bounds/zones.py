"""Time zones of the host, by name."""

from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from shared.errors import Refused


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def utc_offset_minutes(name: str, now: datetime) -> int:
    """Return how far local time is ahead of UTC now.

    Raises:
        Refused: there is no such zone here.
    """
    try:
        offset = now.astimezone(_zone(name)).utcoffset()
    except (KeyError, ValueError, OSError) as error:  # a folder of zones, or a name that leads out of them
        raise Refused(f"timeZone {name!r}: no such zone; want a name such as Europe/Berlin", reason="zone") from error
    return 0 if offset is None else round(offset.total_seconds() / 60)
