"""The promises that every world keeps at every step, by their numbers; what breaks one ends the world.

P1 silence never kills. P2 one intent, at most one kill, of exactly that pod. P3 no eviction goes unreported, and no
fact is doubled. P4 rate and share are bounded. P5 budgets are respected, and never wasted. P6 CPU sets are never wrong.
P7 stale advice expires. P8 stopping is safe. L one leader acts. O nothing is offered above what is applied.
"""

from typing import TYPE_CHECKING

from eviction_promises import EvictionPromises, is_dry_run
from node_promises import NodePromises
from seeded_loop import Process

from shared.adapters.kube.client import KubeRequest
from shared.contracts.pod import TUTORIAL_RECLAIMED_CPU

if TYPE_CHECKING:
    from simulated_node import Machine


class Checks(EvictionPromises, NodePromises):
    """Told of all that happens in a world."""

    def node_asks(self, machine: "Machine", process: Process, request: KubeRequest) -> None:
        """Before a request of an agent leaves."""
        if request.path.endswith("/eviction"):
            self.evicts(process.name, request)
            if not is_dry_run(request):
                self.node_evicts(machine, request)
        elif request.method == "PATCH" and request.path == f"/api/v1/nodes/{machine.name}/status":
            said = (request.body or {}).get("status", {}).get("allocatable", {}).get(TUTORIAL_RECLAIMED_CPU)
            self.offers(machine, said)
        elif request.method == "PATCH" and request.path.endswith(f"customnoderesources/{machine.name}/status"):
            said = (request.body or {}).get("status", {}).get("resourceAllocatable", {}).get(TUTORIAL_RECLAIMED_CPU)
            self.offers(machine, said)

    def every_second(self) -> None:
        """What holds at any moment."""
        self.no_ghosts()
        self.no_silence_of_the_unheard()
        for machine in self.world.machines.values():
            self.lease_ends(machine)

    def at_the_end(self) -> None:
        """All faults are over for long: everything is in order, and everything was told."""
        for machine in self.world.machines.values():
            self.in_order(machine)
        for uid, (at_s, who, pod) in sorted(self.kills.items()):
            tries = [events for events in self.facts.values() if events[0].pod_uid == uid]
            # An earlier try may have failed in all honour: of that which has sent the pod away the end must be told.
            which = [events for events in tries if any(event.phase == "created" for event in events)] or tries
            told = [event for events in which for event in events]
            last = [event for event in told if event.phase in ("succeeded", "failed")]
            if len(last) != 1:
                phases = [event.phase for event in told]
                self.fail(
                    "P3",
                    f"{who} has evicted {pod['metadata']['name']} at {at_s:.1f} s, and the stream says {phases}",
                )
        for intent, events in self.facts.items():
            phases = [event.phase for event in events]
            if len(phases) != len(set(phases)):
                self.fail("P3", f"intent {intent} has the events {phases}")
