"""The plan of each seed: faults at random, and in half of the worlds a story, whose faults belong together.

Faults that come at random rarely meet: a pod is evicted in one world, the stream that its event goes to is full in
another. A story brings together what one rule of the product is about; its times and its company are still random.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from faults import CENTRALS, HORIZON_S, KINDS, NODES, Fault, Plan

OFTEN = ("agent_down", "bus_cut", "short_of_memory", "kill_at_step", "api_lost_answers", "replay_heartbeats", "kill")
"""Those that most rules are about come more often."""
LONG_S = {"agent_down": (20.0, 90.0), "bus_cut": (5.0, 90.0), "short_of_memory": (6.0, 50.0), "freeze": (1.0, 40.0)}
RECLAIMED, SHARED, DEDICATED = 0.0, 1.0, 2.0
"""Amounts of `new_pod`."""

Story = Callable[[Random, str], list[Fault]]


def make_plan(seed: int) -> Plan:
    """The world of a seed."""
    random = Random(seed)
    node, story = random.choice(NODES), random.choice(STORIES) if random.random() < 0.5 else None
    told = story(random, node) if story is not None else []
    faults = [*told, *_at_random(random, (0, 3) if told else (4, 14))]
    whole = set(random.sample(NODES, random.choice((0, 1, 1, 1, 2))))
    if story in OF_A_WHOLE_NODE:
        whole = {node}
    plan = Plan(
        seed,
        (),
        random.choice((1, 2)),
        tuple(sorted(whole)),
        random.choice(("kubelet", "kubelet", "own")),
        random.choice((1, 1, 2)),
    )
    if plan.shards > 1 and random.random() < 0.5:
        faults += _lost_ear(random)
    return replace(plan, faults=tuple(sorted(map(_within_the_world, faults), key=lambda one: one.at_s)))


def _at_random(random: Random, number: tuple[int, int]) -> list[Fault]:
    kinds = [*KINDS, *OFTEN * 3]
    # Few kinds in a world, and these again and again: what only a rare mixture shows is not drowned in all the others.
    chosen = random.sample(kinds, random.randint(3, 9))
    faults = []
    for _ in range(random.randint(*number)):
        kind = random.choice(chosen)
        who, _, amounts = KINDS[kind]
        target = {"n": NODES, "c": CENTRALS, "a": (*NODES, *CENTRALS), "w": ("world",)}[who]
        at_s, for_s = random.uniform(5.0, HORIZON_S - 10.0), random.uniform(*LONG_S.get(kind, (1.0, 40.0)))
        faults.append(Fault(at_s, kind, random.choice(target), for_s, random.uniform(*amounts)))
    return faults


def _within_the_world(fault: Fault) -> Fault:
    at_s = round(fault.at_s, 3)
    return Fault(at_s, fault.kind, fault.target, round(min(fault.for_s, HORIZON_S - at_s), 3), round(fault.amount, 3))


def _pods(random: Random, node: str, number: int, kind: float, at_s: float = 5.0) -> list[Fault]:
    return [Fault(at_s + random.uniform(0.0, 4.0), "new_pod", node, 0.0, kind + 0.5) for _ in range(number)]


def _dead_agent(random: Random, node: str) -> list[Fault]:
    """A lost node loses pod after pod, and is heard again in the middle of it, or not."""
    for_s = random.choice((80.0, random.uniform(45.0, 75.0)))
    slow = [Fault(40.0, "api_slow", central, 45.0, random.uniform(0.05, 0.5)) for central in CENTRALS]
    down = Fault(random.uniform(5.0, 8.0), "agent_down", node, for_s)
    return [down, *_pods(random, node, 6, RECLAIMED), *(slow if random.random() < 0.3 else ())]


def _cut_off(random: Random, node: str) -> list[Fault]:
    """A node lives, and nobody hears it."""
    return [Fault(random.uniform(5.0, 9.0), random.choice(("bus_cut", "bus_mute")), node, 80.0)]


def _unready(random: Random, node: str) -> list[Fault]:
    """A node is heard, and its agent's pod is not ready."""
    return [Fault(random.uniform(5.0, 9.0), "agent_unready", node, 80.0)]


def _word_of_the_dead(random: Random, node: str) -> list[Fault]:
    """Somebody repeats what a node has said in earlier lives, while it says nothing; to a new central as well."""
    dead_s = random.uniform(18.0, 28.0)
    words = [Fault(dead_s + 4.0 * n, "replay_heartbeats", "world", 0.0, random.uniform(20, 40)) for n in range(12)]
    new = [Fault(dead_s + random.uniform(0.0, 30.0), "kill", random.choice(CENTRALS))] if random.random() < 0.5 else []
    return [Fault(random.uniform(8.0, 12.0), "kill", node), Fault(dead_s, "agent_down", node, 60.0), *words, *new]


def _troubled_evictions(random: Random, node: str) -> list[Fault]:
    """Pods are evicted, and what is to be told of it meets trouble."""
    at_s = random.uniform(10.0, 25.0)
    kinds = ("streams_full", "bus_lost_acks", "bus_offline", "bus_mute", "kill", "kill_at_step", "stop", "disk_full")
    trouble = []
    for kind in random.choices(kinds, k=random.randint(1, 4)):
        # One in two loses every acknowledgement: the patience of a try is longer than most of such troubles.
        amount = random.uniform(0, 60) if kind == "kill_at_step" else random.choice((random.uniform(0.3, 1.0), 1.0))
        target = "world" if kind == "streams_full" else node
        trouble.append(Fault(at_s + random.uniform(-2.0, 20.0), kind, target, random.uniform(5.0, 50.0), amount))
    return [
        Fault(at_s, "short_of_memory", node, random.uniform(10.0, 40.0)),
        *_pods(random, node, 3, RECLAIMED),
        *trouble,
    ]


def _relief(random: Random, node: str) -> list[Fault]:
    """A shortage is over before the eviction that it called for can be done."""
    at_s = random.uniform(10.0, 40.0)
    hinder = random.choice(("api_away", "api_refusing", "api_slow", "api_lost_answers"))
    amount = 6.0 if hinder == "api_slow" else random.uniform(0.8, 1.0)
    return [
        Fault(at_s, "short_of_memory", node, random.uniform(4.0, 9.0)),
        Fault(at_s + random.uniform(-1.0, 4.0), hinder, node, random.uniform(8.0, 22.0), amount),
        *_pods(random, node, 2, RECLAIMED),
    ]


def _long_shortage(random: Random, node: str) -> list[Fault]:
    """Batch work and tenants are short of memory for so long that tenants come into question."""
    pods = [*_pods(random, node, 8, RECLAIMED), *_pods(random, node, 2, SHARED)]
    return [Fault(random.uniform(12.0, 20.0), "short_of_memory", node, 60.0), *pods]


def _moving_sets(random: Random, node: str) -> list[Fault]:
    """Pods with CPUs of their own come and go while the kernel refuses writes and the agent dies."""
    trouble = []
    for kind in random.choices(("kernel_refuses", "kernel_read_only", "kill_at_step", "kill", "metrics_silent"), k=3):
        amount = random.uniform(0, 60) if kind == "kill_at_step" else random.uniform(0.05, 0.7)
        trouble.append(Fault(random.uniform(8.0, 70.0), kind, node, random.uniform(3.0, 20.0), amount))
    changes = [
        Fault(random.uniform(8.0, 75.0), kind, node, random.uniform(5.0, 20.0), random.uniform(1.0, 9.0))
        for kind in random.choices(("tenant_spike", "delete_pod", "recreate_pod"), k=4)
    ]
    return [
        *_pods(random, node, 1, DEDICATED, random.uniform(8.0, 60.0)),
        *_pods(random, node, 1, SHARED),
        *changes,
        *trouble,
    ]


def _lost_ear(random: Random) -> list[Fault]:
    """A central that hears a shard hears nothing for long, or stands still."""
    kind = random.choice(("freeze", "bus_deaf", "bus_cut", "bus_offline"))
    return [Fault(random.uniform(10.0, 40.0), kind, random.choice(CENTRALS), random.uniform(20.0, 45.0))]


OF_A_WHOLE_NODE: tuple[Story, ...] = (_troubled_evictions, _relief, _long_shortage, _moving_sets)
STORIES: tuple[Story, ...] = (_dead_agent, _cut_off, _unready, _word_of_the_dead, *OF_A_WHOLE_NODE)
