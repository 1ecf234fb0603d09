"""Pods on nodes whose CPUs or memory kubelet binds and which are sold more than once."""

from dataclasses import dataclass, field, replace

from services.central.core.overcommit.fit import KubeletBinding, RatioPair, SoldNode
from services.central.core.scheduling.cluster.judge import Judge, Now
from services.central.core.scheduling.cluster.node_reports import OfferingCnr, SchedulableNode
from services.central.core.scheduling.cluster.placement_view import PlacementView, ViewRules
from services.central.core.scheduling.cluster.pod_asks import PodAsk, PodAsked, PodSeen
from services.central.core.scheduling.cluster.reservations import Reservations
from services.central.core.scheduling.load.filter import LoadLimits

TWICE = SchedulableNode("n1", {"cpu": 20_000}, sold=SoldNode(RatioPair("2"), RatioPair(), 10_000))
OWN = PodAsk(cpu_request_millis=6000, cpu_limit_millis=6000, own_cpus=6)
SHARED = PodAsk(cpu_request_millis=9000)
BATCH = PodAsk(qos="reclaimed_cores", cpu_request_millis=400, memory_request_bytes=10, prod=False)
BINDS_CPUS = KubeletBinding(cpus=True, memory=False)


@dataclass
class Rig:
    """One node that shows 20 CPUs of which kubelet has 10."""

    node: SchedulableNode = TWICE
    binding: KubeletBinding | None = BINDS_CPUS
    view: PlacementView = field(default_factory=lambda: PlacementView(ViewRules()))
    held: Reservations = field(default_factory=lambda: Reservations(20.0))

    def __post_init__(self) -> None:
        self.judge = Judge(self.view, self.held, LoadLimits())
        self.view.put_node("uid-n1", self.node)
        self.view.put_cnr("uid-c1", OfferingCnr("n1", binding=self.binding))

    def there(self, ask: PodAsk) -> None:
        self.view.put_pod("uid-p0", PodSeen("uid-p0", "team", "p0", ask, "n1"))

    def why(self, ask: PodAsk) -> str:
        looking = self.judge.looking(PodAsked(PodSeen("p", "team", "p", ask)))
        return self.judge.judged(looking, ["n1"], Now(0.0, 1000.0))["n1"].standing.reason


def test_bound_cpus_that_are_sold_twice_count_twice() -> None:
    """A pod that gets CPUs of its own takes them from two buyers each."""
    rig = Rig()
    rig.there(SHARED)
    assert "insufficient cpu" in rig.why(OWN)
    assert rig.why(SHARED) == ""
    assert rig.why(replace(OWN, cpu_request_millis=5000, own_cpus=5)) == ""
    rig.held.reserve("coming", replace(SHARED, cpu_request_millis=3000), ["n1"], 0.0)
    assert "insufficient cpu" in rig.why(SHARED)
    assert rig.why(BATCH) == ""


def test_where_nobody_binds_the_scheduler_counts_alone() -> None:
    for rig in (Rig(binding=None), Rig(node=replace(TWICE, sold=None))):
        rig.there(SHARED)
        assert rig.why(OWN) == ""


def test_whole_cpus_of_pods_that_came_count_before_the_cnr_tells_of_them() -> None:
    rig = Rig()
    rig.there(OWN)
    assert rig.why(PodAsk(cpu_request_millis=8000)) == ""
    assert "insufficient cpu" in rig.why(PodAsk(cpu_request_millis=8001))


def test_memory_that_is_bound_and_sold_twice_takes_no_further_pod() -> None:
    sold = SoldNode(RatioPair(), RatioPair("1.5"))
    rig = Rig(node=replace(TWICE, sold=sold), binding=KubeletBinding(cpus=False, memory=True))
    assert "memory manager" in rig.why(SHARED)
