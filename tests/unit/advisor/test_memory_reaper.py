"""Whose page cache is dropped, and how much of it at once."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.memory.cache_reaper import Cached, Shortage, critical_watermark_bytes, drops, pods_to_reap
from services.advisor.whatif.memory.cache_reaper import CacheReaperQuestion, cache_reaper

SHORT = Shortage(total_bytes=1000, free_bytes=60, critical_bytes=100)


def batch(pod: str, cache: int | None) -> Cached:
    return Cached(pod, "reclaimed_cores", cache)


@pytest.mark.parametrize(
    ("shortage", "containers", "want"),
    [
        pytest.param(SHORT, [batch("a", 20), batch("b", 150)], ["b"], id="the largest is enough"),
        pytest.param(SHORT, [batch("a", 20), batch("b", 140)], ["b", "a"], id="the sum must exceed the target"),
        pytest.param(SHORT, [batch("b", 20), batch("a", 20)], ["a", "b"], id="equally large: by name"),
        pytest.param(SHORT, [batch("a", 90), batch("b", 30), batch("a", 30)], ["a", "b"], id="a pod is named once"),
        pytest.param(SHORT, [batch("a", 5), batch("b", 4)], ["a"], id="too little to be worth it"),
        pytest.param(SHORT, [batch("a", None)], [], id="not known"),
        pytest.param(SHORT, [Cached("a", "shared_cores", 500)], [], id="tenants give nothing"),
        pytest.param(Shortage(1000, 100, 100), [batch("a", 500)], [], id="at the watermark: not below it"),
        pytest.param(Shortage(1000, 99, 100), [batch("a", 500)], ["a"], id="just below it"),
    ],
)
def test_whose_cache_is_dropped(shortage: Shortage, containers: list[Cached], want: list[str]) -> None:
    assert pods_to_reap(shortage, containers) == want


def test_the_critical_watermark_is_twice_the_distance_and_at_least_so_much() -> None:
    assert critical_watermark_bytes(10_000, 50, 20) == 100
    assert critical_watermark_bytes(10_000, 50, 200) == 200


def test_the_least_counts_for_every_numa_node() -> None:
    inputs = {
        "total_bytes": 1000,
        "free_bytes": 150,
        "watermark_scale_factor": 0.0,
        "min_critical_watermark_bytes": 100,
        "containers": [{"pod": "a", "qos": "reclaimed_cores", "cache_bytes": 500}],
    }
    assert cache_reaper(CacheReaperQuestion.model_validate(inputs | {"numas": 1})).drop_cache == []
    assert cache_reaper(CacheReaperQuestion.model_validate(inputs | {"numas": 2})).drop_cache == ["a"]


def test_what_is_dropped_now_is_bounded_by_pod_and_by_the_target() -> None:
    caches = {"a": 90, "b": 60, "c": 60}
    assert drops(SHORT, ["a", "b", "c"], caches, most_bytes=64) == {"a": 64, "b": 60, "c": 16}
    assert drops(SHORT, ["a", "x"], {"a": 0}) == {}
    assert drops(Shortage(1000, 100, 100), ["a"], caches) == {}


sizes = st.integers(0, 1 << 40)
shortages = st.builds(Shortage, sizes, sizes, sizes.map(float))
containers = st.lists(
    st.builds(
        Cached, st.sampled_from("abcdef"), st.sampled_from(["shared_cores", "reclaimed_cores"]), st.none() | sizes
    ),
    max_size=8,
)


@given(shortages, containers, st.randoms(), st.integers(1, 1 << 30))
def test_the_reaper_obeys_its_laws(shortage: Shortage, containers: list[Cached], rng: Random, most: int) -> None:
    pods = pods_to_reap(shortage, containers)
    assert set(pods) <= {c.pod for c in containers if c.qos == "reclaimed_cores" and c.cache_bytes is not None}
    assert len(set(pods)) == len(pods)
    if shortage.free_bytes >= shortage.critical_bytes:
        assert pods == []
    shuffled = list(containers)
    rng.shuffle(shuffled)
    assert pods_to_reap(shortage, shuffled) == pods
    caches = {c.pod: c.cache_bytes or 0 for c in containers}
    given_now = drops(shortage, pods, caches, most)
    assert sum(given_now.values()) <= shortage.target_bytes
    assert all(0 < given <= min(most, caches[pod]) for pod, given in given_now.items())
