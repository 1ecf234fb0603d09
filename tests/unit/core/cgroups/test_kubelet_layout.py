"""Where kubelet puts pods: both drivers, every QoS class, container ids, a cgroup root of its own."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_cgroups import PlainCgroups

from shared.adapters.host.kubelet_tree import find_layout
from shared.contracts.pod import Container, KubeQos, Pod
from shared.core.cgroups.group_path import group_parts
from shared.core.cgroups.kubelet_layout import DRIVERS, Driver, KubeletLayout
from shared.errors import Unavailable

UID = "1b2c3d4e-0000-4000-8000-00000000000a"
SLICE_UID = UID.replace("-", "_")
ID = "ab" * 32
MIRROR, HASH = "kubernetes.io/config.mirror", "kubernetes.io/config.hash"


def pod(kube: str | None = None, *, qos: str = "shared_cores", **amounts: int) -> Pod:
    return Pod(uid=UID, name="web", qos=qos, kube_qos=kube, containers=(Container(name="c", **amounts),))


@pytest.mark.parametrize(
    ("driver", "root", "kube", "group"),
    [
        ("cgroupfs", "", "Guaranteed", f"kubepods/pod{UID}"),
        ("cgroupfs", "", "Burstable", f"kubepods/burstable/pod{UID}"),
        ("cgroupfs", "", "BestEffort", f"kubepods/besteffort/pod{UID}"),
        ("cgroupfs", "kubelet", "BestEffort", f"kubelet/kubepods/besteffort/pod{UID}"),
        ("systemd", "", "Guaranteed", f"kubepods.slice/kubepods-pod{SLICE_UID}.slice"),
        ("systemd", "", "Burstable",
         f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE_UID}.slice"),
        ("systemd", "kubelet", "BestEffort",
         "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
         f"kubelet-kubepods-besteffort-pod{SLICE_UID}.slice"),
    ],
)  # fmt: skip
def test_a_pods_group(driver: Driver, root: str, kube: KubeQos, group: str) -> None:
    layout = KubeletLayout(driver, root)
    assert layout.pod_group(pod(kube)) == group
    assert group.rpartition("/")[0] in layout.homes
    assert group.startswith(f"{layout.top}/")


@pytest.mark.parametrize(
    ("driver", "container", "leaf"),
    [
        ("cgroupfs", f"containerd://{ID}", ID),
        ("cgroupfs", f"cri-o://{ID}", f"crio-{ID}"),
        ("systemd", f"containerd://{ID}", f"cri-containerd-{ID}.scope"),
        ("systemd", f"cri-o://{ID}", f"crio-{ID}.scope"),
        ("systemd", f"docker://{ID}", f"docker-{ID}.scope"),
    ],
)
def test_a_containers_group(driver: Driver, container: str, leaf: str) -> None:
    layout = KubeletLayout(driver)
    group = layout.container_group(pod("Burstable"), Container(name="c", id=container))
    assert group == f"{layout.pod_group(pod('Burstable'))}/{leaf}"


@pytest.mark.parametrize("layout", [KubeletLayout(driver, root) for driver in DRIVERS for root in ("", "kubelet")])
def test_the_layout_is_found_by_the_top_group(tmp_path: Path, layout: KubeletLayout) -> None:
    plain = PlainCgroups(tmp_path)
    with pytest.raises(Unavailable, match="does kubelet run"):
        find_layout(plain.cgroups)
    plain.add(layout.top)
    assert find_layout(plain.cgroups) == layout


def test_a_container_without_an_id_has_no_group_yet() -> None:
    assert KubeletLayout("systemd").container_group(pod("Burstable"), Container(name="c")) is None


@pytest.mark.parametrize(
    ("given_pod", "home"),
    [
        (pod(), "kubepods/besteffort"),
        (pod(cpu_request_millis=100), "kubepods/burstable"),
        (pod(cpu_request_millis=100, cpu_limit_millis=100), "kubepods/burstable"),
        (pod(cpu_request_millis=100, cpu_limit_millis=100, memory_request_bytes=1, memory_limit_bytes=1), "kubepods"),
        (pod(qos="reclaimed_cores", cpu_request_millis=100), "kubepods/besteffort"),
    ],
    ids=["nothing asked", "request", "no memory", "guaranteed", "reclaimed amounts do not count"],
)
def test_without_kubelets_word_the_amounts_say_the_class(given_pod: Pod, home: str) -> None:
    assert KubeletLayout("cgroupfs").pod_group(given_pod).rpartition("/")[0] == home


@pytest.mark.parametrize(
    ("others", "whole"),
    [
        ([], True),
        ([("b", "shared_cores", "Burstable")], True),
        ([("b", "shared_cores", "BestEffort")], False),
        ([("b", "reclaimed_cores", "Burstable")], False),
    ],
    ids=["alone", "a tenant elsewhere", "a tenant among them", "one of them elsewhere"],
)
def test_the_best_effort_group_stands_for_the_reclaimed_class_only_while_it_is_exactly_that(
    others: list[tuple[str, str, str]], whole: bool
) -> None:
    pods = [pod("BestEffort", qos="reclaimed_cores")]
    pods += [Pod(uid=uid, name=uid, qos=qos, kube_qos=kube) for uid, qos, kube in others]
    assert KubeletLayout("cgroupfs").reclaimed_group(pods) == ("kubepods/besteffort" if whole else None)


@given(
    uid=st.uuids().map(str),
    driver=st.sampled_from(["cgroupfs", "systemd"]),
    kube=st.sampled_from(["Guaranteed", "Burstable", "BestEffort"]),
)
def test_every_group_is_a_name_the_cgroup_adapter_takes(uid: str, driver: Driver, kube: KubeQos) -> None:
    layout = KubeletLayout(driver)
    one = Pod(uid=uid, name="p", kube_qos=kube, containers=(Container(name="c", id=f"containerd://{ID}"),))
    group = layout.container_group(one, one.containers[0])
    assert group is not None
    assert group_parts(group)[-2] == layout.pod_group(one).rpartition("/")[2]


@pytest.mark.parametrize("text", ["containerd://../../etc", "containerd://", "rkt://ab", f"containerd://{ID}/x"])
def test_an_id_that_could_leave_the_tree_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="id"):
        Container(name="c", id=text)


MIRRORED = {MIRROR: "ab" * 16, HASH: "ab" * 16}


@pytest.mark.parametrize(
    ("annotations", "owner", "name"),
    [
        pytest.param(MIRRORED, "Node/n1", "ab" * 16, id="a static pod's mirror"),
        pytest.param(MIRRORED, None, UID, id="a mirror that no node made"),
        pytest.param(MIRRORED, "Job/n1", UID, id="a mirror that a job made"),
        pytest.param({HASH: "ab" * 16}, "Node/n1", UID, id="an ordinary pod that says so"),
        pytest.param({MIRROR: "x", HASH: "../../../evil"}, "Node/n1", UID, id="a path"),
        pytest.param({MIRROR: "x", HASH: UID}, "Node/n1", UID, id="another pod's UID"),
        pytest.param({MIRROR: "x", HASH: "ab" * 16 + "\n"}, "Node/n1", UID, id="a line end"),
    ],
)
def test_a_static_pods_group_is_named_after_its_file(annotations: dict[str, str], owner: str | None, name: str) -> None:
    static = Pod(uid=UID, name="kube-apiserver-n1", kube_qos="Burstable", annotations=annotations, owner=owner)
    assert KubeletLayout("cgroupfs").pod_group(static) == f"kubepods/burstable/pod{name}"
