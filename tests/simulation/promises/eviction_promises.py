"""The promises about evictions: who goes (P1), once (P2), told (P3), how many (P4, P5), and by whose word (L)."""

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from heartbeat_promises import HeartbeatPromises
from kube_api import Document
from seeded_loop import Process

from services.central.core.lost_nodes.guards import allowed_bad
from shared.adapters.kube.client import KubeRequest
from shared.contracts.bus.stored import read_event, read_intent
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.pod import Pod
from shared.ports import Received

if TYPE_CHECKING:
    from simulated_central import Site
    from simulated_node import Machine
    from simulated_world import World

SLACK_S = 4.0
"""Between a check and the request that follows from it: lookups of an API server that answers slowly."""
AT_ONCE_S = 0.3
"""The same of one that answers at once."""
PRESSED_S = 5.0 + SLACK_S
"""For how long after its end an evictor may take a pressure for present."""
PODS_PER_S = 10 / 60
"""What central evicts at most, two of a node at once."""


class EvictionPromises(HeartbeatPromises):
    """What becomes of pods, and what is told of it."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.agent_ready_s: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=80))
        """By node, when kubelet has said that its agent is ready."""
        self.gone_by_others: set[str] = set()
        self.kills: dict[str, tuple[float, str, Document]] = {}
        """By UID, when and by whom a pod was sent on its way."""
        self.facts: dict[str, list[EvictionEvent]] = defaultdict(list)
        self._central_kills: list[float] = []
        self._rehearsed: set[tuple[str, str]] = set()

    def evicts(self, who: str, request: KubeRequest) -> None:
        """Before any eviction is asked for."""
        uid = ((request.body or {}).get("deleteOptions") or {}).get("preconditions", {}).get("uid")
        if uid is None:
            self.fail("P2", f"{who} evicts {request.path} without saying which pod it means")
        elif is_dry_run(request):
            self._rehearsed.add((who, uid))
        elif (who, uid) not in self._rehearsed and not any(key[1] == uid for key in self._rehearsed):
            self.fail("P5", f"{who} evicts {request.path} without a rehearsal")

    def node_evicts(self, machine: "Machine", request: KubeRequest) -> None:
        """Before a node evicts."""
        now_s, uid = self.world.now_s, (request.body or {})["deleteOptions"]["preconditions"].get("uid", "")
        pod = self._pod(uid)
        tried = {found for who, found in self._rehearsed if who.startswith(machine.name)}
        spared = [one.key for one in machine.pods()
                  if one.qos == "reclaimed_cores" and not one.terminating and one.uid not in tried]  # fmt: skip
        if pod is not None and pod.qos != "reclaimed_cores" and spared:
            self.fail("P1", f"{machine.name} evicts {pod.key}, which is {pod.qos}, and spares {spared}")
        asked = sum(
            c.cpu_request_millis for one in machine.pods() if one.qos == "reclaimed_cores" for c in one.containers
        )
        pressed = (
            machine.short
            or now_s - machine.short_until_s < PRESSED_S
            or asked > self._least_applied(machine.name, now_s - PRESSED_S)
        )
        if not pressed:
            self.fail("P1", f"{machine.name} evicts {uid[:8]} though nothing presses on it")
        if machine.disk_full:
            return
        steps = self.ledger_of(machine)
        if not any(found == uid and step in ("requested", "accepted") for found, step in steps.values()):
            self.fail("P2", f"{machine.name} evicts {uid[:8]} before that is in its ledger: {steps}")

    def _least_applied(self, node: str, since_s: float) -> int:
        """The smallest amount that was in force on a node since then."""
        told = self.applied[node]
        return min((amount for index, (_, amount) in enumerate(told)
                    if index + 1 == len(told) or told[index + 1][0] >= since_s), default=0)  # fmt: skip

    def central_asks(self, site: "Site", request: KubeRequest) -> None:
        """Before a request of a central leaves."""
        own_lease = request.path.endswith("/leases/sublet-central") or request.path.endswith("sublet-system/leases")
        if request.method == "GET" or own_lease:
            return
        if (holder := self._holder()) != site.identity:
            self.fail("L", f"{site.identity} does {request.method} {request.path} while {holder or 'nobody'} leads")
        if request.path.endswith("/eviction"):
            self.evicts(site.name, request)
            if not is_dry_run(request):
                self._central_evicts(site, request)

    def _central_evicts(self, site: "Site", request: KubeRequest) -> None:
        from simulated_central import RULES

        uid = (request.body or {})["deleteOptions"]["preconditions"].get("uid", "")
        document = self._document(uid)
        if document is None:
            return
        node, now_s, evict_s = document["spec"]["nodeName"], self.world.now_s, RULES["evict_s"]
        # What came while the call was under way nobody could know.
        until_s = now_s - (SLACK_S if self._may_lag(site) else AT_ONCE_S)
        alive = {"ready": self.agent_ready_s[node], "heard": self.heard_s[site.name, node]}
        for how, moments in alive.items():
            if lately := [at_s for at_s in moments if now_s - evict_s + SLACK_S < at_s < until_s]:
                self.fail("P1", f"{site.name} evicts from {node}, whose agent was {how} {now_s - lately[-1]:.2f} s ago")
        pod = self._pod(uid)
        if pod is not None and pod.qos != "reclaimed_cores":
            self.fail("P1", f"{site.name} evicts {pod.key}, which is {pod.qos}")
        lost = [name for name, at_s in self.alive_s.items() if now_s - at_s > RULES["late_s"] + SLACK_S]
        total = len(self.world.machines)
        if len(lost) > max(1, allowed_bad(total, len(lost), 0.2)):
            self.fail("P4", f"{site.name} evicts from {node} while {len(lost)} of {total} nodes are lost")

    def _may_lag(self, site: "Site") -> bool:
        process = site.agent
        recent = process is not None and self.world.now_s - process.thawed_s < SLACK_S
        return recent or self.troubled(site)

    def _holder(self) -> str:
        lease = self.world.api.objects.get(
            "/apis/coordination.k8s.io/v1/namespaces/sublet-system/leases/sublet-central"
        )
        return "" if lease is None else str((lease.get("spec") or {}).get("holderIdentity") or "")

    def api_did(self, _process: Process | None, _request: KubeRequest, _status: int) -> None:
        """After a request was carried out."""
        if self.world.api.burnt:
            self.fail("P5", "a refused eviction has used up a slot of a budget")

    def pod_ended(self, _path: str, pod: Document, had_uid: bool) -> None:
        """An eviction has sent a pod on its way."""
        from seeded_loop import CURRENT

        process, uid = CURRENT.get(), pod["metadata"]["uid"]
        who = process.name if process is not None else "?"
        if not had_uid:
            self.fail("P2", f"{who} has evicted {uid[:8]} without its UID")
        if uid in self.kills:
            self.fail("P2", f"{uid[:8]} was evicted twice")
        self.kills[uid] = (self.world.now_s, who, pod)
        self.world.tell(f"{who} has evicted {pod['metadata']['name']} ({uid[:8]})")
        if process is not None and not process.node:
            self._central_kills.append(self.world.now_s)
            for number, first_s in enumerate(reversed(self._central_kills), start=1):
                span_s = self.world.now_s - first_s
                if number > 2 + PODS_PER_S * (span_s + 1.0):
                    self.fail("P4", f"centrals have evicted {number} pods within {span_s:.1f} s")

    def _document(self, uid: str) -> Document | None:
        return next((one for one in self.world.api.objects.values() if one["metadata"].get("uid") == uid), None)

    def _pod(self, uid: str) -> Pod | None:
        return next((pod for machine in self.world.machines.values() for pod in machine.pods() if pod.uid == uid), None)

    def stored(self, message: Received, process: Process | None) -> None:
        """A stream has taken a message."""
        event = read_event(message.subject, message.headers, message.data) if "event" in message.subject else None
        if isinstance(event, EvictionEvent):
            if any(other.event_id == event.event_id for other in self.facts[event.intent_id]):
                self.fail("P3", f"event {event.event_id} is stored twice")
            self.facts[event.intent_id].append(event)
            self.world.tell(
                f"stored: {event.phase} {event.pod} ({event.pod_uid[:8]}) of {event.plugin}: {event.detail}"
            )
            self._written_first(event, process)
        elif event is None and "intent" in message.subject and process is not None and not process.node:
            intent = read_intent(message.subject, message.data)
            site = self.world.sites.get(process.name)
            if isinstance(intent, EvictionIntent) and site is not None and self._holder() != site.identity:
                self.fail("L", f"{site.identity} announces {intent.intent_id} while {self._holder() or 'nobody'} leads")

    def _written_first(self, event: EvictionEvent, process: Process | None) -> None:
        """A node's fact is in its ledger before it is on the stream."""
        if process is None or not process.node:
            return
        machine = self.world.machines[process.node]
        if event.intent_id not in self.ledger_of(machine):
            self.fail("P3", f"{process.name} publishes {event.event_id} which is not in its ledger")
        if (
            event.phase in ("created", "succeeded")
            and event.pod_uid not in self.kills
            and event.pod_uid not in self.gone_by_others
        ):
            self.fail("P3", f"{process.name} says {event.phase} of {event.pod_uid[:8]}, which nobody has evicted")

    def ledger_of(self, machine: "Machine") -> dict[str, tuple[str, str]]:
        """Pod UID and step of each intent, read beside the evictor."""
        import sqlite3

        path = machine.state / "ledger.db"
        if not path.exists():
            return {}
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return {row[0]: (row[1], row[2]) for row in db.execute("SELECT id, pod_uid, step FROM intents")}
        except sqlite3.Error:
            return {}
        finally:
            db.close()


def is_dry_run(request: KubeRequest) -> bool:
    """Whether an eviction is only rehearsed."""
    return "dryRun" in ((request.body or {}).get("deleteOptions") or {})
