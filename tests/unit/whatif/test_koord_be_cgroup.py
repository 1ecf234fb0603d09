"""Cgroup values of Koordinator's best-effort pods: a table of the rules, and laws over pods of every kind."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.whatif import answer, kinds

KNOWN = kinds()
CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
NOTHING = {"cpu_shares": None, "cfs_quota_us": None, "memory_limit_bytes": None}


def limited(cpu: int = 1000, memory: int = 1 << 30) -> dict[str, Any]:
    return {"requests": {CPU: cpu, MEMORY: memory}, "limits": {CPU: cpu, MEMORY: memory}}


def ask(*containers: dict[str, Any], **changed: Any) -> dict[str, Any]:
    named = {f"c{number}": container for number, container in enumerate(containers)}
    return answer(KNOWN, "be_cgroup", {"koord_qos": "BE", "containers": named} | changed)


def values(shares: int, quota: int, memory: int) -> dict[str, int]:
    return {"cpu_shares": shares, "cfs_quota_us": quota, "memory_limit_bytes": memory}


@pytest.mark.parametrize(
    ("containers", "pod"),
    [
        pytest.param([limited(), limited(500)], values(1536, 150_000, 2 << 30), id="the sum"),
        pytest.param([limited(), {"requests": {CPU: 500}}], values(1536, -1, -1), id="one without limits"),
        pytest.param([limited(), {}], values(1024, -1, -1), id="one without anything"),
        pytest.param([{"requests": {CPU: 500}, "limits": {CPU: 1500}}], values(512, 150_000, -1), id="request below"),
        pytest.param([{"limits": {CPU: 0, MEMORY: 0}}], values(2, -1, -1), id="0 is no limit"),
        pytest.param([{"requests": {CPU: -5}, "limits": {CPU: -5, MEMORY: -1}}], values(2, -1, -1), id="below 0"),
        pytest.param([limited(), {"requests": {CPU: -5000}, "limits": {CPU: 1, MEMORY: 1}}],
                     values(1024, 100_100, (1 << 30) + 1), id="a request below 0 takes nothing off"),
        pytest.param([limited(1)], values(2, 1000, 1 << 30), id="the least shares and quota"),
        pytest.param([limited(10_000_000)], values(262_144, 1_000_000_000, 1 << 30), id="the most shares"),
    ],
)  # fmt: skip
def test_the_pods_own_values(containers: list[dict[str, Any]], pod: dict[str, int]) -> None:
    assert ask(*containers)["pod"] == pod


@pytest.mark.parametrize(
    "changed",
    [
        *({"koord_qos": qos} for qos in ("LSE", "LSR", "LS", "SYSTEM", None)),
        {"containers": None},
        {"containers": {}},
        {"containers": {"c": {}}},
        {"containers": {"c": {"requests": {"cpu": 500}, "limits": {"memory": 5}}}},
    ],
)
def test_what_has_no_batch_resource_is_left_alone(changed: dict[str, Any]) -> None:
    assert ask(limited(), **changed) == {"pod": NOTHING, "containers": {}}


def test_no_quota_while_the_suppression_uses_it() -> None:
    found = ask(limited(), limited(500), cfs_quota_allowed=False, cpu_normalization_ratio=2)
    assert found["pod"] == values(1536, -1, 2 << 30)
    assert [one["cfs_quota_us"] for one in found["containers"].values()] == [-1, -1]


@pytest.mark.parametrize(
    ("ratio", "quota"), [(None, 50_000), (1.2, 41_667), (2, 25_000), (1, 50_000), (0.5, 50_000), (-1, 50_000)]
)
def test_a_faster_cpu_gives_the_same_in_less_time(ratio: float | None, quota: int) -> None:
    assert ask(limited(500), cpu_normalization_ratio=ratio)["containers"]["c0"]["cfs_quota_us"] == quota


AMOUNTS = st.dictionaries(st.sampled_from([CPU, MEMORY]), st.integers(-5, 1 << 40))
CONTAINERS = st.fixed_dictionaries({"requests": AMOUNTS, "limits": AMOUNTS})


@given(st.lists(CONTAINERS, min_size=1, max_size=4), st.booleans())
def test_a_pod_never_has_less_than_one_of_its_containers(containers: list[dict[str, Any]], quota: bool) -> None:
    found = ask(*containers, cfs_quota_allowed=quota)
    pod = found["pod"]
    for one in found["containers"].values():
        assert pod["cpu_shares"] >= one["cpu_shares"]
        for name in ("cfs_quota_us", "memory_limit_bytes"):
            assert pod[name] == -1 or 0 < one[name] <= pod[name]
