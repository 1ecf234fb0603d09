"""Find the sources: every module of the folder `sources` but the template, by name."""

from services.metrics import sources
from services.metrics.core.source import Source
from shared.registry import Registry

TEMPLATE = "template"


def known_sources(*, counters: bool = True) -> dict[str, Source]:
    """Return every source of the folder `sources`, by name; without `counters`, none that reads performance counters.

    The template is left out: no setting disables a source, so its figure would be in every sample.
    """
    found = Registry(Source, sources, "SOURCE").known()
    return {name: source for name, source in found.items() if name != TEMPLATE and source.counters <= counters}
