"""CPU that the kernel itself takes on a NUMA node: the rules one by one."""

from typing import Any, cast

import pytest
from kind_door import ask, says


def stats(**numas: tuple[list[float], list[float]]) -> list[dict[str, Any]]:
    of = {numa.removeprefix("n"): {"cpu": cpu, "sys": sys} for numa, (cpu, sys) in numas.items()}
    return cast("list[dict[str, Any]]", ask("numa_sys_cpu_stats", ring_size=2, met_ratio=0.5, numas=of)["stats"])


def test_only_nodes_over_both_soft_lines_are_named_the_largest_share_first() -> None:
    found = stats(
        n0=([0.6, 0.6], [0.3, 0.3]),
        n1=([0.6, 0.6], [0.1, 0.1]),
        n2=([0.3, 0.3], [0.3, 0.3]),
        n3=([0.5, 0.1], [0.4, 0.0]),
        n10=([0.6, 0.6], [0.3, 0.3]),
    )
    assert [stat["numa"] for stat in found] == [3, 0, 10]
    assert found[0] == {
        "numa": 3,
        "cpu_avg": pytest.approx(0.3),
        "sys_avg": pytest.approx(0.2),
        "cpu_soft": True,
        "cpu_hard": False,
        "sys_soft": True,
        "sys_hard": True,
    }


def test_a_node_that_did_nothing_has_no_share() -> None:
    assert stats(n0=([0, 0], [0, 0]), n1=([], []), n2=([0.9], [])) == []


STAT = {
    "numa": 0,
    "cpu_avg": 0.6,
    "sys_avg": 0.3,
    "cpu_soft": True,
    "cpu_hard": True,
    "sys_soft": True,
    "sys_hard": True,
}


def sys_pod(name: str, sys: float, cpu: float = 10, numa: int | None = 0) -> dict[str, Any]:
    return {"name": name, "numa": numa, "cpu_cores": cpu, "sys_cores": sys}


def sys_pressure(*pods: dict[str, Any], stats: list[dict[str, Any]] | None = None, **inputs: Any) -> dict[str, Any]:
    base = {"enabled": True, "stats": [STAT] if stats is None else stats, "pods": list(pods)}
    return ask("numa_sys_cpu_pressure", **base | inputs)


@pytest.mark.parametrize(
    ("pods", "inputs", "want"),
    [
        pytest.param([], {}, {"met": "NOT_MET"}, id="no pods"),
        pytest.param([sys_pod("a", 9)], {"enabled": False}, {"met": "NOT_MET"}, id="off"),
        pytest.param([sys_pod("a", 9)], {"stats": []}, {"met": "NOT_MET"}, id="no node"),
        pytest.param(
            [sys_pod("a", 9)],
            {"stats": [STAT | {"sys_hard": False}]},
            {"met": "SOFT_MET", "threshold": 0.4, "observed": 0.5, "victims": []},
            id="soft",
        ),
        pytest.param(
            [sys_pod("a", 9)],
            {"stats": [STAT | {"cpu_hard": False}, STAT | {"numa": 1}]},
            {"met": "SOFT_MET"},
            id="the first node decides",
        ),
        pytest.param(
            [sys_pod("a", 9)], {"stats": [STAT | {"cpu_soft": False, "cpu_hard": False}]}, {"met": "NOT_MET"}, id="not"
        ),
        pytest.param(
            [sys_pod("b", 5), sys_pod("a", 5), sys_pod("c", 9, numa=1), sys_pod("d", 9, numa=None), sys_pod("e", 2.9)],
            {"top_n": 9, "grace_period_s": 60},
            {"met": "HARD_MET", "victims": ["a", "b"], "deletion_grace_s": 60},
            id="most system time on that node, by name, with a share that counts",
        ),
    ],
)
def test_numa_sys_cpu_pressure_follows_its_rules(
    pods: list[dict[str, Any]], inputs: dict[str, Any], want: dict[str, Any]
) -> None:
    assert says(sys_pressure(*pods, **inputs), **want)
