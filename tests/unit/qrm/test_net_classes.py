"""Ids of packets: by class, for the pod and its containers, on cgroup v1 alone, and given back."""

from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups
from test_pod_limits_written import TENANT as LIMITED
from test_pod_limits_written import Limited

from services.qrm.adapters.kernel.isolation import GroupIsolation
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.isolation.net_classes import net_class_values
from services.qrm.core.isolation.rules import NodeRules
from services.qrm.core.isolation.wanted import wanted_values
from services.qrm.former_values import FormerValues
from services.qrm.sections.network import NetClassSettings
from services.qrm.settings import QrmSettings
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.errors import Refused

LAYOUT = KubeletLayout("cgroupfs")
BATCH = Pod(uid="b2", name="b", qos="reclaimed_cores", kube_qos="BestEffort",
            containers=(Container(name="c", id=f"containerd://{'a' * 12}"), Container(name="d")))  # fmt: skip
TENANT = Pod(uid="c3", name="c", kube_qos="Burstable")
GROUPS = ["kubepods/besteffort/podb2", f"kubepods/besteffort/podb2/{'a' * 12}"]
IDS = NetClassSettings(enabled=True, reclaimed_cores_id=1_048_577).rules()


def test_a_class_with_an_id_has_it_for_pods_and_containers_that_are_known() -> None:
    assert net_class_values([BATCH, TENANT], LAYOUT, IDS) == {(group, Knob.NET_CLASS): 1_048_577 for group in GROUPS}
    assert wanted_values([BATCH], LAYOUT, NodeRules(net_classes=IDS)) == net_class_values([BATCH], LAYOUT, IDS)


def test_it_is_off_unless_switched_on() -> None:
    assert QrmSettings().isolation_rules(0).net_classes == {}
    assert NetClassSettings(reclaimed_cores_id=5).rules() == {}
    said = {"net_class": {"enabled": True, "shared_cores_id": 7}}
    assert QrmSettings.model_validate(said).isolation_rules(0).net_classes["shared_cores"] == 7


@pytest.mark.parametrize("number", [-1, 1 << 32, "10:1", 1.5])
def test_an_id_that_no_packet_can_have_is_refused(number: object) -> None:
    with pytest.raises(ValueError, match="reclaimed_cores_id"):
        NetClassSettings.model_validate({"reclaimed_cores_id": number})


def test_on_v1_it_is_written_repaired_and_given_back_as_it_was(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path, version=1)
    for group in GROUPS:
        plain.add(group)
        plain.folder(group, "net_cls").mkdir(parents=True, exist_ok=True)
        plain.set(group, "net_cls.classid", "9", "net_cls")
    isolation = GroupIsolation(CgroupWriter(plain.cgroups, LAYOUT.top), FormerValues())
    wanted = net_class_values([BATCH], LAYOUT, IDS)
    assert isolation.settle(wanted, 0.0, 10.0) == []
    plain.set(GROUPS[0], "net_cls.classid", "5", "net_cls")
    assert isolation.settle(wanted, 1.0, 10.0) == []
    assert [plain.get(group, "net_cls.classid", "net_cls") for group in GROUPS] == ["1048577"] * 2
    assert isolation.lacking == ()
    assert isolation.give_back() == []
    assert [plain.get(group, "net_cls.classid", "net_cls") for group in GROUPS] == ["9"] * 2


@pytest.mark.parametrize("version", [1, 2])
def test_without_the_controller_the_file_is_named(tmp_path: Path, version: int) -> None:
    plain = PlainCgroups(tmp_path, version=1 if version == 1 else 2)
    for group in GROUPS:
        plain.add(group)
    isolation = GroupIsolation(CgroupWriter(plain.cgroups, LAYOUT.top), FormerValues())
    assert isolation.settle(net_class_values([BATCH], LAYOUT, IDS), 0.0, 10.0) == []
    assert isolation.lacking == ("net_cls.classid",)


def test_with_a_damaged_record_ids_that_may_be_others_stay(tmp_path: Path) -> None:
    node = Limited(tmp_path, "cgroupfs", 1)
    node.start(LIMITED)
    group = node.layout.pod_group(LIMITED)
    node.plain.folder(group, "net_cls").mkdir(parents=True, exist_ok=True)
    node.plain.set(group, "net_cls.classid", "9", "net_cls")
    node.damage_record()
    after = node.another_life()
    with pytest.raises(Refused):
        after.resume()
    assert after.restore([LIMITED]) == ()
    assert node.plain.get(group, "net_cls.classid", "net_cls") == "9"
