"""One pass over the host: every source reads every target of the kinds it offers figures for."""

from collections.abc import Callable, Mapping, Sequence

from services.metrics import sources
from services.metrics.core.figures import GROUPS, Figure, Kind, Target, Value
from services.metrics.core.summary import Reading
from services.metrics.host import Host, Source
from services.metrics.ports import Collected
from shared.contracts.pod import Pod
from shared.core.scan import modules_in
from shared.errors import Refused


def find_sources() -> dict[str, Source]:
    """Every source of the folder `sources`, by name."""
    return {name: module.SOURCE for name, module in modules_in(sources).items()}


class Collector:
    """Reads the targets of a pass in their order, each with its own time stamp."""

    def __init__(
        self,
        host: Host,
        found: Mapping[str, Source],
        targets: Callable[[Sequence[Pod]], Sequence[Target]],
        monotonic: Callable[[], float],
    ) -> None:
        self._host, self._targets, self._monotonic = host, targets, monotonic
        self._by_kind: dict[Kind, list[tuple[str, Source]]] = {}
        self.offered: dict[Kind, tuple[Figure, ...]] = {}
        for name, source in found.items():
            for kind, figures in source.figures.items():
                self._by_kind.setdefault(kind, []).append((name, source))
                self.offered[kind] = (*self.offered.get(kind, ()), *_unclaimed(figures, self.offered, kind, name))

    def collect(self, pods: Sequence[Pod]) -> Collected:
        """Read everything once. A cgroup that does not exist has no reading; a source that fails spoils only its own.

        Raises:
            OSError: the host cannot be read at all.
        """
        targets = self._targets(pods)
        self._host.begin(targets)
        readings: dict[Target, Reading] = {}
        failures: dict[str, str] = {}
        for target in targets:
            reading = self._read(target, failures)
            if reading is not None:
                readings[target] = reading
        return Collected(readings, failures)

    def _read(self, target: Target, failures: dict[str, str]) -> Reading | None:
        identity: int | None = 0
        if target.kind in GROUPS:
            try:
                identity = self._host.identity(target)
            except (OSError, Refused) as error:
                failures.setdefault("cgroup", f"{target.group}: {error}")
                return None
        if identity is None:
            return None
        at_s, raw = self._monotonic(), dict[str, Value]()
        for name, source in self._by_kind.get(target.kind, ()):
            try:
                raw.update(source.read(self._host, target))
            except (OSError, ValueError, IndexError) as error:
                failures.setdefault(name, f"{target.group or target.kind}: {error}")
        return Reading(at_s, raw, identity)


def _unclaimed(
    figures: tuple[Figure, ...], offered: Mapping[Kind, tuple[Figure, ...]], kind: Kind, source: str
) -> tuple[Figure, ...]:
    """The figures, if no other source offers one of the same name.

    Raises:
        ValueError: two sources would overwrite each other.
    """
    taken = {figure.name for figure in offered.get(kind, ())}
    for figure in figures:
        if figure.name in taken:
            raise ValueError(f"source {source!r}: another source already offers {figure.name!r} for {kind}; rename one")
    return figures
