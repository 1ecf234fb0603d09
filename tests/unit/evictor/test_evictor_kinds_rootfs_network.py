"""Root file system and network cards: the rules one by one, and laws."""

from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kind_door import GIB, ask, says
from pydantic import ValidationError

FS = {
    "available_bytes": 20,
    "used_bytes": 80,
    "capacity_bytes": 100,
    "inodes_free": 200,
    "inodes_used": 800,
    "inodes": 1000,
}


def writing(name: str, used: int = 0, inodes: int = 0, qos: str = "shared_cores", **fields: Any) -> dict[str, Any]:
    return {"name": name, "qos": qos, "used_bytes": used, "inodes_used": inodes} | fields


def rootfs(*pods: dict[str, Any], fs: dict[str, Any] | None = FS, **inputs: Any) -> dict[str, Any]:
    return ask("rootfs_pressure", image_fs=fs, pods=list(pods), **inputs)


MET = {"met": "HARD_MET", "scope": "SystemRootfs", "condition": "SystemRootfs/NoSchedule"}
NOT_MET: dict[str, Any] = {"met": "NOT_MET", "scope": None, "condition": None, "victims": []}


@pytest.mark.parametrize(
    ("inputs", "want"),
    [
        pytest.param({}, NOT_MET, id="no threshold"),
        pytest.param({"minimum_free_bytes": 20}, NOT_MET, id="equal"),
        pytest.param({"minimum_free_bytes": 21}, MET, id="bytes"),
        pytest.param({"minimum_free_ratio": 0.2}, NOT_MET, id="equal ratio"),
        pytest.param({"minimum_free_ratio": 0.21}, MET, id="ratio"),
        pytest.param({"minimum_free_ratio": 1.0}, NOT_MET, id="100 % is no threshold"),
        pytest.param({"minimum_free_ratio": 0.0}, NOT_MET, id="0 % is no threshold"),
        pytest.param({"minimum_inodes_free": 201}, MET, id="inodes"),
        pytest.param({"minimum_inodes_free_ratio": 0.3}, MET, id="ratio of inodes"),
        pytest.param({"minimum_free_bytes": 21, "fs": None}, NOT_MET, id="no figures"),
        pytest.param({"minimum_free_bytes": 21, "fs": FS | {"age_s": 60}}, MET, id="figures just young enough"),
        pytest.param({"minimum_free_bytes": 21, "fs": FS | {"age_s": 60.1}}, NOT_MET, id="figures too old"),
        pytest.param({"minimum_free_ratio": 0.9, "fs": FS | {"capacity_bytes": 0}}, NOT_MET, id="no capacity"),
        pytest.param({"minimum_free_ratio": 0.9, "fs": FS | {"capacity_bytes": 19}}, NOT_MET, id="more free than all"),
    ],
)
def test_too_little_room_is_judged_by_its_rules(inputs: dict[str, Any], want: dict[str, Any]) -> None:
    assert says(rootfs(**inputs), **want)


@pytest.mark.parametrize(
    ("pods", "inputs", "victims"),
    [
        pytest.param([writing("a", 1, 9), writing("b", 2, 1)], {}, ["b", "a"], id="bytes decide when both are short"),
        pytest.param(
            [writing("a", 1, 9), writing("b", 2, 1)], {"minimum_free_bytes": 1}, ["a", "b"], id="inodes alone"
        ),
        pytest.param([writing("b", 5), writing("a", 5)], {}, ["a", "b"], id="by name"),
        pytest.param(
            [writing("a", 5, namespace="z"), writing("b", 5, namespace="y")], {}, ["b", "a"], id="namespace first"
        ),
        pytest.param(
            [writing("web", 50), writing("r1", 11, qos="reclaimed_cores"), writing("r2", 10, qos="reclaimed_cores")],
            {"reclaimed_priority_used_bytes": 10},
            ["r1", "web", "r2"],
            id="reclaimed pods above their amount first",
        ),
        pytest.param(
            [writing("web", 50), writing("r", 11, qos="reclaimed_cores")],
            {"reclaimed_priority_used_ratio": 0.1},
            ["r", "web"],
            id="as a ratio of the capacity",
        ),
        pytest.param(
            [writing("web", 50), writing("r", 11, qos="reclaimed_cores")],
            {"reclaimed_priority_used_ratio": 0.0},
            ["web", "r"],
            id="0 % gives nobody precedence",
        ),
        pytest.param([writing("a", 9), writing("b", 10)], {"pod_minimum_used_bytes": 10}, ["b"], id="protected"),
        pytest.param([writing("a", 9), writing("b", 10)], {"pod_minimum_used_ratio": 0.1}, ["b"], id="as a ratio"),
        pytest.param(
            [writing("r", 6, qos="reclaimed_cores")],
            {"pod_minimum_used_bytes": 10, "reclaimed_priority_used_bytes": 5},
            ["r"],
            id="above the priority nobody is protected",
        ),
        pytest.param([writing("a", 9, age_s=61), writing("b", 1, age_s=60)], {}, ["b"], id="old figures of a pod"),
        pytest.param(
            [writing("a", 1, 100), writing("b", 1, 99)],
            {"minimum_free_bytes": 1, "pod_minimum_inodes_used_ratio": 0.1},
            ["a"],
            id="inodes as a ratio",
        ),
        pytest.param([writing("a", 9), writing("b", 8)], {"top_n": 1}, ["a"], id="as many as asked"),
    ],
)
def test_who_goes_from_a_full_file_system(
    pods: list[dict[str, Any]], inputs: dict[str, Any], victims: list[str]
) -> None:
    short = {"minimum_free_bytes": 21, "minimum_inodes_free": 201, "top_n": 9}
    assert rootfs(*pods, **short | inputs)["victims"] == victims


@given(
    pods=st.lists(
        st.builds(
            writing,
            st.sampled_from("abcdef"),
            st.integers(0, 9),
            st.integers(0, 9),
            st.sampled_from(["shared_cores", "reclaimed_cores"]),
        ),
        unique_by=lambda p: p["name"],
    ),
    least=st.integers(0, 9),
    order=st.randoms(use_true_random=False),
)
def test_order_means_nothing_and_the_protected_stay(pods: list[dict[str, Any]], least: int, order: Random) -> None:
    mixed = list(pods)
    order.shuffle(mixed)
    asked: dict[str, Any] = {"minimum_free_bytes": 21, "pod_minimum_used_bytes": least, "top_n": 9}
    victims = rootfs(*pods, **asked)["victims"]
    assert victims == rootfs(*mixed, **asked)["victims"]
    assert {p["name"] for p in pods if p["used_bytes"] >= least} == set(victims)


@pytest.mark.parametrize(
    "both",
    [
        {"minimum_free_bytes": 1, "minimum_free_ratio": 0.1},
        {"minimum_inodes_free": 1, "minimum_inodes_free_ratio": 0.1},
        {"reclaimed_priority_used_bytes": 1, "reclaimed_priority_used_ratio": 0.1},
    ],
    ids=str,
)
def test_a_line_is_an_amount_or_a_ratio_never_both(both: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="not both"):
        rootfs(**both)


def overuse(*pods: dict[str, Any], **inputs: Any) -> list[str]:
    base = {"enabled": True, "max_victims": 9, "supported_qos": ["shared_cores", "reclaimed_cores", "dedicated_cores"],
            "shared_namespaces": ["default"], "capacity_bytes": 1000 * GIB}  # fmt: skip
    return cast("list[str]", ask("rootfs_overuse", pods=list(pods), **base | inputs)["soft_victims"])


def storing(name: str, gib: int, qos: str = "shared_cores", namespace: str = "default") -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "qos": qos, "used_bytes": gib * GIB}


@pytest.mark.parametrize(
    ("pods", "inputs", "victims"),
    [
        pytest.param([storing("a", 99)], {}, [], id="no threshold"),
        pytest.param([storing("a", 50), storing("b", 51)], {"shared_threshold_bytes": 50 * GIB}, ["b"], id="above"),
        pytest.param([storing("a", 20), storing("b", 21)], {"shared_threshold_bytes": GIB}, ["b"], id="floor of bytes"),
        pytest.param(
            [storing("a", 100), storing("b", 101)], {"shared_threshold_ratio": 0.01}, ["b"], id="floor of ratio"
        ),
        pytest.param([storing("a", 201)], {"shared_threshold_ratio": 0.2}, ["a"], id="ratio"),
        pytest.param([storing("a", 99, namespace="other")], {"shared_threshold_bytes": 1}, [], id="other namespace"),
        pytest.param(
            [storing("a", 99, "reclaimed_cores", "other")], {"reclaimed_threshold_bytes": 1}, ["a"], id="reclaimed"
        ),
        pytest.param(
            [storing("a", 99, "dedicated_cores")],
            {"shared_threshold_bytes": 1, "reclaimed_threshold_bytes": 1},
            [],
            id="dedicated",
        ),
        pytest.param(
            [storing("a", 99)], {"shared_threshold_bytes": 1, "supported_qos": []}, [], id="not a supported class"
        ),
        pytest.param(
            [storing("a", 30), storing("c", 40), storing("b", 40)],
            {"shared_threshold_bytes": 1, "max_victims": 2},
            ["b", "c"],
            id="the largest, by name",
        ),
        pytest.param([storing("a", 99)], {"shared_threshold_bytes": 1, "enabled": False}, [], id="off"),
    ],
)
def test_rootfs_overuse_follows_its_rules(
    pods: list[dict[str, Any]], inputs: dict[str, Any], victims: list[str]
) -> None:
    assert overuse(*pods, **inputs) == victims


BANDWIDTH = {"resource.katalyst.kubewharf.io/net_bandwidth": 1}


def nic(*nics: dict[str, Any], pods: list[dict[str, Any]], **inputs: Any) -> tuple[list[str], list[str]]:
    answer = ask("nic_pressure", nics=list(nics), pods=pods, **{"enabled": True} | inputs)
    return answer["unhealthy"], answer["soft_victims"]


def card(name: str, bandwidth: float | None, down_s: float = 300, *pods: str) -> dict[str, Any]:
    allocations = [{"pod": pod} for pod in pods]
    return {"name": name, "allocatable_bandwidth": bandwidth, "unhealthy_for_s": down_s, "allocations": allocations}


def given_card(name: str, card: str | None, requests: dict[str, int] | None = None) -> dict[str, Any]:
    return {"name": name, "nic_selection_result": card, "requests": requests}


POD = given_card("p", None)


@pytest.mark.parametrize(
    ("nics", "pods", "inputs", "want"),
    [
        pytest.param([card("b", 0), card("a", None), card("c", 1)], [], {}, (["a", "b"], []), id="which are down"),
        pytest.param([card("e", 0, 300, "p", "gone")], [POD], {}, (["e"], ["p"]), id="allocated"),
        pytest.param([card("e", 0, 299, "p")], [POD], {}, (["e"], []), id="not for long enough"),
        pytest.param([card("e", 0, 10, "p")], [POD], {"tolerance_s": 10}, (["e"], ["p"]), id="another tolerance"),
        pytest.param([card("e", 5, 300, "p")], [POD], {}, ([], []), id="up"),
        pytest.param([card("e", 0)], [given_card("p", "e", BANDWIDTH)], {}, (["e"], ["p"]), id="annotated"),
        pytest.param([card("e", 0)], [given_card("p", "e")], {}, (["e"], []), id="annotated, wants no bandwidth"),
        pytest.param([card("e", 0)], [given_card("p", "f", BANDWIDTH)], {}, (["e"], []), id="another card"),
        pytest.param(
            [card("e", 0, 300, "z"), card("f", 0, 300, "a", "z")],
            [given_card("z", None), given_card("a", None)],
            {},
            (["e", "f"], ["a", "z"]),
            id="each pod once, by name",
        ),
        pytest.param([card("e", 0, 300, "p")], [POD], {"enabled": False}, (["e"], []), id="off"),
    ],
)
def test_nic_pressure_follows_its_rules(
    nics: list[dict[str, Any]],
    pods: list[dict[str, Any]],
    inputs: dict[str, Any],
    want: tuple[list[str], ...],
) -> None:
    assert nic(*nics, pods=pods, **inputs) == want
