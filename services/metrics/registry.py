"""Find the sources: every module of the folder `sources`, by name."""

from services.metrics import sources
from services.metrics.core.source import Source
from shared.registry import Registry


def known_sources() -> dict[str, Source]:
    """Every source of the folder `sources`, by name."""
    return Registry(Source, sources, "SOURCE").known()
