"""Frames of tenants' series as columns: the view is made of the figures, without a sample in between.

A sample is checked, packed and unpacked for every frame, and only three figures of a tenant are new in one. Containers
are made of them for whoever looks at one; most contenders ask for the figures alone. What a contender sees is the same
to the last digit.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import TypeVar

from services.advisor.core.model.containers import Column, Containers, CpuColumns
from services.advisor.core.model.figures import Figures
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.observation.sample_view import view_of
from shared.contracts.sample import NodeSample
from sublet.replay.traces.frames import FrameLoad

T = TypeVar("T")


def variant_of(template: T, *names: str) -> Callable[..., T]:
    """A function that makes copies of a data class in which these fields have the values that it is given."""
    every = [field.name for field in fields(template)]  # type: ignore[arg-type]
    values = [getattr(template, name) for name in every]
    places = [every.index(name) for name in names]
    kind = type(template)

    def make(*changed: object) -> T:
        mine = values.copy()
        for place, value in zip(places, changed, strict=True):
            mine[place] = value
        return kind(*mine)

    return make


@dataclass(frozen=True, slots=True)
class ColumnFrame:
    """One moment of a node, as `Frame`, without a sample."""

    at_s: float
    covers_s: float
    used_cores: float
    load: FrameLoad
    containers: Containers[ContainerView]
    columns: "TenantColumns"

    @property
    def may_wait(self) -> bool:
        """A trace says nothing of that."""
        return False

    def view(self, bounds: Bounds) -> View:
        """What the advisor would see of it on a machine with these bounds."""
        return self.columns.view_at(bounds)(self.containers, self.used_cores, self.used_cores)

    def has_rates(self, view: View) -> bool:  # noqa: ARG002
        """Every tenant that is there has a figure."""
        return True


class TenantColumns:
    """What does not change of one node's tenants."""

    def __init__(self, sample: NodeSample, bounds: Bounds) -> None:
        """`sample` has every tenant of the node, each with one container."""
        # The view keeps pods of one uid in the order of the sample: each finds its own place.
        places: dict[str, deque[int]] = defaultdict(deque)
        for place, reading in enumerate(sample.pods):
            places[reading.pod.uid].append(place)
        self._sample = sample
        self._seen = view_of(sample, bounds).containers
        # The view's order of containers, as places in the order of the tenants.
        self._order = [places[container.uid].popleft() for container in self._seen]
        self._here = _Present(self._seen, self._order)
        self._views: dict[Bounds, Callable[..., View]] = {}

    def frame(self, at_s: float, covers_s: float, used_cores: float, tenants: CpuColumns) -> ColumnFrame:
        """A frame; `tenants` in the order of the sample, None for one that is not there."""
        here = [use for use in tenants.usage if use is not None]
        # As the load of a sample: summed in the order of the tenants, and at least what their pool used.
        total = sum(here)
        load = FrameLoad(max(total, used_cores), max(0.0, used_cores - total))
        containers = self._present(tenants.usage, len(here)).with_figures(tenants)
        return ColumnFrame(at_s, covers_s, used_cores, load, containers, self)

    def _present(self, usage: Column, count: int) -> "_Present":
        """Those that are there: they stay the same for as long as nobody comes or goes."""
        known = self._here
        if count == len(known.places) and None not in known.in_order(usage):
            return known
        pairs = zip(self._seen, self._order, strict=True)
        there = [(container, place) for container, place in pairs if usage[place] is not None]
        self._here = _Present([container for container, _ in there], [place for _, place in there])
        return self._here

    def view_at(self, bounds: Bounds) -> Callable[..., View]:
        """A function of the containers, the use of their pool, and that of the node."""
        if bounds not in self._views:
            names = ("containers", "tenants_usage_cores", "node_usage_cores")
            self._views[bounds] = variant_of(view_of(self._sample, bounds), *names)
        return self._views[bounds]


def _picker(places: Sequence[int]) -> Callable[[Column], Column]:
    if len(places) > 1:
        return itemgetter(*places)
    # Of one item it gives no tuple, and without any there is none.
    return lambda values: tuple([values[place] for place in places])


class _Present:
    """The containers that are there at a time, whatever they use."""

    def __init__(self, containers: Sequence[ContainerView], places: Sequence[int]) -> None:
        """`places` of the containers in the order of the tenants."""
        self.places = places
        self._like = Containers(containers)
        self._makers = [variant_of(container, "cpu") for container in containers]
        self.in_order = _picker(places)
        """Picks the values of the containers, in their order, from those of all tenants."""

    def with_figures(self, tenants: CpuColumns) -> Containers[ContainerView]:
        """The containers with these figures of the tenants."""
        cpu = CpuColumns(*map(self.in_order, tenants))

        def make() -> Iterator[ContainerView]:
            for of_container, usage, load1, load5 in zip(self._makers, *cpu, strict=True):
                yield of_container(Figures(usage, load1, load5))

        return Containers.measured(self._like, cpu, make)
