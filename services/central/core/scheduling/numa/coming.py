"""`with_coming` takes from a machine what pods will have there that it does not show yet, where the rule puts them."""

from collections.abc import Iterable
from dataclasses import replace

from services.central.core.scheduling.numa.binding import BindablePod, NumaBinding
from services.central.core.scheduling.numa.fit import numa_fit
from services.central.core.scheduling.numa.machine import Machine
from services.central.core.scheduling.numa.room import Room, asked_for


def with_coming(machine: Machine, binding: NumaBinding, pods: Iterable[BindablePod]) -> Machine:
    """The machine with these pods on it, one after the other; one that finds no place takes none."""
    for pod in pods:
        places = numa_fit(pod, binding, machine)
        if not places.applies or not places.fits:
            continue
        room = Room(machine, binding.aligned if binding.exclusive(pod) else ())
        for name, requests in binding.asks(pod, machine):
            for resource, amount in asked_for(requests).items():
                room.allocate(resource, amount, places.nodes[name])
        machine = replace(machine, numas=tuple(replace(one, available=room.left[one.id]) for one in machine.numas))
    return machine
