"""From one arrangement of a node to the next, ten thousand times: every prefix of every plan is a safe state."""

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from cpuset_model import CpusetModel, check_safe

from services.qrm.core.placement.arrangement import Arrangement, Node, arrange
from services.qrm.core.writes.classes import wanted_groups
from services.qrm.core.writes.plan import Sets, WantedSets, plan_writes
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.pod import Container, Pod, QosClass
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import OwnLayout, class_group, pod_group
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape

PLANS = 10_000
TOP = "t"
MACHINE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=4, threads=2))
MEMS = CpuSet.of([0, 1])
CLASSES: tuple[QosClass, ...] = ("shared_cores", "dedicated_cores", "reclaimed_cores", "system_cores")
RECLAIMED = class_group("reclaimed_cores", TOP)
MEMORY, CPU = "katalyst.kubewharf.io/memory_enhancement", "katalyst.kubewharf.io/cpu_enhancement"
BOUND = json.dumps({"numa_binding": "true"})
KINDS: tuple[tuple[QosClass, dict[str, str]], ...] = (
    ("dedicated_cores", {MEMORY: BOUND}),
    ("dedicated_cores", {MEMORY: json.dumps({"numa_binding": "true", "numa_exclusive": "true"})}),
    ("dedicated_cores", {}),
    ("shared_cores", {MEMORY: BOUND}),
    ("shared_cores", {CPU: json.dumps({"cpuset_pool": "flink"})}),
    ("shared_cores", {}),
    ("reclaimed_cores", {MEMORY: BOUND}),
    ("reclaimed_cores", {}),
)


def some_pod(chance: Random, number: int) -> Pod:
    qos, annotations = chance.choice(KINDS)
    container = Container(name="main", cpu_request_millis=chance.choice((0, 500, 1000, 2000, 3000)))
    return Pod(uid=f"{number:x}", name=f"pod-{number}", qos=qos, annotations=annotations, containers=(container,))


def some_advice(chance: Random) -> PoolAdvice:
    cpus = len(MACHINE.all)
    reserve, overlap = chance.choice((0, 0, 2)), chance.random() < 0.1
    share = chance.randint(1, cpus - reserve)
    reclaim = chance.randint(0, cpus - reserve - share)
    fields: dict[str, Any] = {
        "seq": 1,
        "pools": (
            PoolSize(pool="share", cpus=share),
            PoolSize(pool="reclaim", cpus=reclaim),
            PoolSize(pool="reserve", cpus=reserve),
        ),
        "overlap": overlap,
    }
    return PoolAdvice.model_construct(**fields)


def groups_of(pods: list[Pod], before: dict[str, CpuSet]) -> dict[str, CpuSet]:
    """The tree with the groups of these pods: those of others are gone, new ones begin with their class's set."""
    groups = {group: cpus for group, cpus in before.items() if group.count("/") < 2}
    for pod in pods:
        group = pod_group(pod, TOP)
        groups[group] = before.get(group, groups[class_group(pod.qos, TOP)])
        groups[f"{group}/main"] = before.get(f"{group}/main", groups[group])
    return groups


def story(chance: Random, steps: int) -> Iterator[tuple[Arrangement, list[Pod]]]:
    """A node's life: pods come and go, sizes change."""
    pods: list[Pod] = []
    held: Mapping[str, CpuSet] = {}
    number = 0
    for _ in range(steps):
        pods = [pod for pod in pods if chance.random() < 0.8]
        while len(pods) < 6 and chance.random() < 0.6:
            number += 1
            pods.append(some_pod(chance, number))
        what = arrange(
            Node(MACHINE, {}, pods, held), some_advice(chance), chance.choice(("reclaim-first", "share-first"))
        )
        held = what.held
        yield what, list(pods)


def test_every_prefix_of_ten_thousand_plans_is_safe() -> None:
    chance = Random(20260101)
    prefixes = 0
    now = {TOP: MACHINE.all} | {class_group(qos, TOP): MACHINE.all for qos in CLASSES}
    for what, pods in story(chance, PLANS):
        now = groups_of(pods, now)
        wanted = wanted_groups(what.pools, Sets(MACHINE.all, MEMS), OwnLayout(TOP), pods, what.owned)
        plan = plan_writes({group: Sets(cpus, MEMS) for group, cpus in now.items()}, wanted)
        plan = [write for write in plan if write.knob is Knob.CPUS]
        own = {group: want.sets.cpus for group, want in wanted.items() if want.own}
        cornered = no_way_around(now, wanted, own)
        model = CpusetModel(now, MACHINE.all)
        for write in plan:
            model.run(write)  # the kernel takes it
            check_safe(model.groups)
            prefixes += 1
            for group, cpus in own.items():
                given = model.groups[group] & cpus & model.groups[RECLAIMED]
                assert cornered or given <= now[group] & now[RECLAIMED], f"{group} has {given}, which is reclaimed"
        for group, cpus in own.items():
            assert model.groups[group] == model.groups[f"{group}/main"] == cpus
            assert not cpus & model.groups[RECLAIMED]
        now = dict(model.groups)
    assert prefixes > 2 * PLANS


def no_way_around(now: dict[str, CpuSet], wanted: dict[str, WantedSets], own: dict[str, CpuSet]) -> bool:
    """Reclaimed work trades all its CPUs against such as are somebody's own, and no other CPU is left to wait on."""
    taken = promised = CpuSet()
    for group, cpus in own.items():
        taken, promised = taken | now[group], promised | cpus
    trades = not now[RECLAIMED] & wanted[RECLAIMED].sets.cpus
    return trades and not MACHINE.all - taken - promised and now[RECLAIMED] <= promised
