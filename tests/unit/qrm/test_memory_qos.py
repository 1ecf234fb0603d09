"""Memory QoS: what pods, containers and the groups above them get, and that a parent always contains its children."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.isolation.group_identity import identity_values
from services.qrm.core.isolation.memory_qos import AUTO, memory_values, of_pod
from services.qrm.core.isolation.rules import MemoryQos, NodeRules
from services.qrm.core.isolation.wanted import in_order, may_be_given, wanted_values
from shared.contracts.pod import Container, Pod, QosClass
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import QOS_CLASSES, OwnLayout, above

MIB, GIB = 1 << 20, 1 << 30
OWN, KUBELET = OwnLayout(), KubeletLayout("cgroupfs")
PLAIN = MemoryQos(wmark_ratio=0)


def container(name: str, request: int, limit: int = 0) -> Container:
    return Container(name=name, memory_request_bytes=request, memory_limit_bytes=limit,
                     id=f"containerd://{(name.encode().hex() * 12)[:12]}")  # fmt: skip


def pod(*containers: Container, qos: QosClass = "shared_cores", says: str = "", as_one: bool = False) -> Pod:
    annotations = {"koordinator.sh/memoryQOS": says} if says else {}
    return Pod(uid="a1", name="p", qos=qos, kube_qos="Burstable", containers=containers, annotations=annotations,
               as_one=as_one)  # fmt: skip


def values(qos: MemoryQos, *pods: Pod) -> dict[str, dict[str, int]]:
    """By the last part of the knob, then by the last part of the group."""
    found: dict[str, dict[str, int]] = {}
    rules = NodeRules(memory=dict.fromkeys(QOS_CLASSES, qos), machine_bytes=8 * GIB)
    for (group, knob), value in memory_values(pods, OWN, rules).items():
        found.setdefault(knob.rpartition(".")[2], {})[group.rpartition("/")[2]] = value
    return found


PAIR = pod(container("a", 100 * MIB, 200 * MIB), container("b", 300 * MIB))
UPWARDS = ("poda1", "shared_cores", "sublet")


def test_a_pod_and_all_above_it_get_the_sum_and_containers_their_own() -> None:
    both = values(MemoryQos(min_percent=50, low_percent=100, wmark_ratio=0), PAIR)
    assert both["min"] == {"a": 50 * MIB, "b": 150 * MIB} | dict.fromkeys(UPWARDS, 200 * MIB)
    assert both["low"] == {"a": 100 * MIB, "b": 300 * MIB} | dict.fromkeys(UPWARDS, 400 * MIB)


def test_low_is_never_below_min_where_there_is_any() -> None:
    assert values(MemoryQos(min_percent=50, low_percent=10, wmark_ratio=0), PAIR)["low"]["poda1"] == 200 * MIB
    assert "low" not in values(MemoryQos(min_percent=50, wmark_ratio=0), PAIR)


def test_a_container_is_slowed_down_between_request_and_limit_or_the_machine() -> None:
    high = values(MemoryQos(throttle_percent=80, wmark_ratio=0), PAIR)["high"]
    of_machine = 300 * MIB + (8 * GIB - 300 * MIB) * 80 // 100
    assert high == {"a": 180 * MIB, "b": of_machine - of_machine % 4096}
    assert "high" not in values(PLAIN, PAIR)
    tight = pod(container("a", 100 * MIB, 100 * MIB))
    assert values(MemoryQos(min_percent=100, throttle_percent=1, wmark_ratio=0), tight)["high"] == {"a": 100 * MIB}


def test_without_a_limit_and_a_known_machine_nobody_is_slowed_down() -> None:
    rules = NodeRules(memory={"shared_cores": MemoryQos(throttle_percent=80, wmark_ratio=0)}, machine_bytes=0)
    assert {group for (group, knob) in memory_values([PAIR], OWN, rules) if knob is Knob.MEMORY_HIGH} == {
        OWN.container_group(PAIR, PAIR.containers[0])
    }


def test_watermarks_are_those_of_the_class() -> None:
    found = values(AUTO["reclaimed_cores"], PAIR)
    assert found["wmark_ratio"] == dict.fromkeys(("poda1", "a", "b"), 95)
    assert found["wmark_scale_factor"] == dict.fromkeys(("poda1", "a", "b"), 20)
    assert found["wmark_min_adj"] == dict.fromkeys(("poda1", "a", "b"), 50)


def test_nothing_is_wanted_where_it_is_off() -> None:
    asking = pod(container("a", MIB), says='{"policy": "auto", "minLimitPercent": 100}')
    assert memory_values([PAIR, asking], OWN, NodeRules()) == {}
    assert wanted_values([PAIR], OWN, NodeRules()) == {}


NODE = MemoryQos(min_percent=10, low_percent=20, throttle_percent=80)


@pytest.mark.parametrize(
    ("says", "holds"),
    [
        ('{"minLimitPercent": 100}', MemoryQos(100, 20, 80)),
        ('{"policy": "default", "throttlingPercent": 0}', MemoryQos(10, 20, 0)),
        ('{"policy": "", "wmarkMinAdj": -25}', MemoryQos(10, 20, 80, wmark_min_adj=-25)),
        ('{"policy": "auto"}', AUTO["shared_cores"]),
        ('{"policy": "auto", "lowLimitPercent": 5}', MemoryQos(low_percent=5, wmark_min_adj=-25)),
        ('{"policy": "none", "minLimitPercent": 100}', PLAIN),
        ('{"minLimitPercent": 101, "lowLimitPercent": -1}', NODE),
        ('{"minLimitPercent": "100", "lowLimitPercent": true, "throttlingPercent": 1.5}', NODE),
        ('{"policy": {"a": []}}', NODE),
        ("{" * 200, NODE),
        ("null", NODE),
        ("[]", NODE),
    ],
)
def test_what_a_pod_says_stands_over_its_class(says: str, holds: MemoryQos) -> None:
    assert of_pod(pod(says=says), {"shared_cores": NODE}) == holds


@pytest.mark.parametrize("says", ['{"minLimitPercent": 100}', '{"policy": "none"}', '{"policy": "auto"}'])
def test_a_reclaimed_pod_has_no_say(says: str) -> None:
    assert of_pod(pod(qos="reclaimed_cores", says=says), {"reclaimed_cores": NODE}) == NODE


@st.composite
def nodes(draw: st.DrawFn) -> tuple[list[Pod], NodeRules]:
    """Pods of any class, and rules of any figures."""
    sizes = st.integers(0, 8 * GIB)
    pods = [
        Pod(uid=f"{number:02}", name=f"p{number}", qos=draw(st.sampled_from(QOS_CLASSES)),
            kube_qos=draw(st.sampled_from(["Guaranteed", "Burstable", "BestEffort"])),
            containers=tuple(container(f"c{n}", draw(sizes), draw(sizes)) for n in range(draw(st.integers(0, 3)))))
        for number in range(draw(st.integers(0, 4)))
    ]  # fmt: skip
    percent = st.integers(0, 100)
    rules = {qos: MemoryQos(draw(percent), draw(percent), draw(percent)) for qos in QOS_CLASSES}
    return pods, NodeRules(memory=rules, machine_bytes=8 * GIB)


def below(group: str, found: dict[str, int]) -> int:
    return sum(value for name, value in found.items() if name.rpartition("/")[0] == group)


@given(nodes(), st.sampled_from([OWN, KUBELET]))
def test_law_low_contains_min_and_every_parent_its_children(
    node: tuple[list[Pod], NodeRules], layout: OwnLayout | KubeletLayout
) -> None:
    found = memory_values(node[0], layout, node[1])
    assert found.keys() <= may_be_given(node[0], layout, tuple(Knob))
    for (group, knob), value in found.items():
        if knob in (Knob.MEMORY_MIN, Knob.MEMORY_LOW):
            assert value >= below(group, {name: of for (name, other), of in found.items() if other is knob})
            assert all((name, knob) in found for name in above(group))
        # Of the groups above pods some may have no low at all in their sum.
        own = {layout.pod_group(pod) for pod in node[0]} | {name for name, k in found if k is Knob.MEMORY_HIGH}
        if knob is Knob.MEMORY_HIGH or (knob is Knob.MEMORY_LOW and group in own):
            assert value >= found.get((group, Knob.MEMORY_MIN), 0)
        assert knob is not Knob.MEMORY_HIGH or value % 4096 == 0 or value == found[group, Knob.MEMORY_MIN]


def least(node: tuple[list[Pod], NodeRules]) -> dict[str, int]:
    found = memory_values(node[0], KUBELET, node[1])
    return {group: value for (group, knob), value in found.items() if knob is Knob.MEMORY_MIN}


@given(nodes(), nodes())
def test_law_at_every_write_a_parent_contains_its_children(
    before: tuple[list[Pod], NodeRules], after: tuple[list[Pod], NodeRules]
) -> None:
    now, goal = least(before), least(after)
    pairs = {group: (now.get(group, 0), goal.get(group, 0)) for group in now | goal}
    changes = {(group, Knob.MEMORY_MIN): pair for group, pair in pairs.items() if pair[0] != pair[1]}
    for group, _ in in_order(changes):
        now[group] = goal.get(group, 0)
        assert all(value >= below(name, now) for name, value in now.items())
    assert {group: value for group, value in now.items() if value} == goal


def test_one_container_that_stands_for_all_is_its_pod() -> None:
    alone = pod(container("a", 100 * MIB, 200 * MIB), as_one=True)
    rules = NodeRules(memory={"shared_cores": MemoryQos(100, wmark_ratio=0)})
    groups = ("kubepods/burstable/poda1", "kubepods/burstable", "kubepods")
    assert memory_values([alone], KUBELET, rules) == {(group, Knob.MEMORY_MIN): 100 * MIB for group in groups}


IDENTITIES: dict[QosClass, int] = {"dedicated_cores": 2, "shared_cores": 2, "reclaimed_cores": -1, "system_cores": 0}


def identities(*pods: Pod) -> dict[str, int]:
    return {group: value for (group, _), value in identity_values(pods, KUBELET, IDENTITIES).items()}


def test_every_pod_has_its_classes_identity_and_so_has_a_group_of_one_class_alone() -> None:
    batch = Pod(uid="b2", name="b", qos="reclaimed_cores", kube_qos="BestEffort")
    tenant = Pod(uid="c3", name="c", kube_qos="BestEffort")
    whole = Pod(uid="d4", name="d", qos="dedicated_cores", kube_qos="Guaranteed")
    own = "kubepods/burstable/poda1"
    assert identities(PAIR, batch, whole) == {
        own: 2, f"{own}/616161616161": 2, f"{own}/626262626262": 2, "kubepods/burstable": 2,
        "kubepods/besteffort/podb2": -1, "kubepods/besteffort": -1, "kubepods/podd4": 2,
    }  # fmt: skip
    assert identities(batch, tenant) == {"kubepods/besteffort/podb2": -1, "kubepods/besteffort/podc3": 2}
    assert identity_values([PAIR, batch], KUBELET, {}) == {}
