"""What one container counts, and a region: the two revisions of the rule, and laws."""

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.demand.cpu import estimate_cores
from services.advisor.core.model.figures import Figures
from services.advisor.whatif.cpu.estimate import RULES, ProvisionQuestion, RuleName, provision_canonical

amounts = st.floats(0, 1000, allow_nan=False)
figures = st.builds(Figures, *[st.none() | amounts] * 3)


@pytest.mark.parametrize(
    ("rule", "usage", "load1", "load5", "asked", "cores"),
    [
        pytest.param("head", 2, 1, 1, 4, 2.5, id="head: usage with a quarter on top"),
        pytest.param("head", 2, 3, 1, 4, 3, id="head: the 1-minute load"),
        pytest.param("head", 2, 1, 4, 4, 4, id="head: the 5-minute load"),
        pytest.param("head", 1, None, None, 9, 1.25, id="head: one figure is enough"),
        pytest.param("head", None, None, None, 2, 2, id="head: nothing measured"),
        pytest.param("head", 0, 0, -1, 2, 2, id="head: 0 and less count as missing"),
        pytest.param("head", 0, None, None, 0, 4, id="head: nothing at all"),
        pytest.param("head", None, None, None, -2, 4, id="head: a request below 0"),
        pytest.param("v0.1.0", 2, 1, 1, 4, 2, id="v0.1.0: usage as it is"),
        pytest.param("v0.1.0", 2, 1, None, 4, 4, id="v0.1.0: the request fills a gap"),
        pytest.param("v0.1.0", 2, 1, 0, 4, 4, id="v0.1.0: a load of 0 is a gap"),
        pytest.param("v0.1.0", 6, 1, None, 4, 6, id="v0.1.0: the request is not the largest"),
        pytest.param("v0.1.0", None, None, None, 0, 4, id="v0.1.0: nothing at all"),
    ],
)
def test_the_largest_known_figure_counts(
    rule: RuleName, usage: int | None, load1: int | None, load5: int | None, asked: int, cores: float
) -> None:
    assert estimate_cores(Figures(usage, load1, load5), asked, RULES[rule]) == cores


@given(figures, amounts, st.sampled_from(sorted(RULES)), st.sampled_from(["usage_cores", "load1", "load5"]), amounts)
def test_more_load_never_counts_less(
    before: Figures, request_cores: float, rule: RuleName, field: str, more: float
) -> None:
    known = getattr(before, field)
    if known is None or known <= 0:
        return  # a figure that appears may well be smaller than the request that stood in for it
    values = {name: getattr(before, name) for name in ("usage_cores", "load1", "load5")}
    after = Figures(**values | {field: known + more})
    assert estimate_cores(after, request_cores, RULES[rule]) >= estimate_cores(before, request_cores, RULES[rule])


@given(figures, amounts, st.sampled_from(sorted(RULES)))
def test_every_container_counts_something(measured: Figures, request_cores: float, rule: RuleName) -> None:
    assert 0 < estimate_cores(measured, request_cores, RULES[rule]) < math.inf


def container(**fields: Any) -> dict[str, Any]:
    return {"qos": "shared_cores", "request_cores": 4.0} | fields


def provision(*containers: dict[str, Any], **fields: Any) -> float:
    question = ProvisionQuestion.model_validate({"containers": list(containers)} | fields)
    return provision_canonical(question).required_cores


@pytest.mark.parametrize(
    ("containers", "fields", "cores"),
    [
        pytest.param([], {}, 0, id="an empty region"),
        pytest.param([container(usage_cores=2.0), container(load1=3.0)], {}, 5.5, id="the sum"),
        pytest.param([container(usage_cores=2.0, ramp_up=True)], {}, 4, id="ramp-up"),
        pytest.param([container(request_cores=0.0, ramp_up=True)], {}, 4, id="ramp-up without request"),
        pytest.param([container(usage_cores=2.0)], {"enable_reclaim": False}, 4, id="reclaim off"),
        pytest.param([container(qos="dedicated_cores", usage_cores=2.0)], {}, 2.5, id="dedicated"),
        pytest.param([container(qos="reclaimed_cores", usage_cores=2.0)], {}, 0, id="reclaimed counts nothing"),
        pytest.param([container(qos="system_cores", usage_cores=2.0)], {}, 0, id="system counts nothing"),
        pytest.param([container(usage_cores=2.0, load1=1.0)], {"rule": "v0.1.0"}, 4, id="the older rule"),
        pytest.param(
            [container(usage_cores=4.0, cpuset_per_numa={0: "0-5", 1: "12-13"})], {"region_numas": [1]}, 1.25,
            id="the part in the region",
        ),
        pytest.param(
            [container(usage_cores=4.0, cpuset_per_numa={0: "0-5"})], {"region_numas": [1]}, 0, id="outside"
        ),
        pytest.param([container(usage_cores=4.0, cpuset_per_numa={0: "0-5"})], {}, 5, id="no region said"),
        pytest.param([container(usage_cores=4.0, cpuset_per_numa={0: ""})], {"region_numas": [1]}, 5, id="no CPU yet"),
        pytest.param([container(usage_cores=4.0)], {"region_numas": [0]}, 5, id="no cpuset said"),
    ],
)  # fmt: skip
def test_a_region_needs_the_sum_of_its_containers_parts(
    containers: list[dict[str, Any]], fields: dict[str, Any], cores: float
) -> None:
    assert provision(*containers, **fields) == cores


@given(st.lists(amounts, max_size=20), st.randoms())
def test_the_sum_is_the_same_in_every_order(usages: list[float], random: Random) -> None:
    containers = [container(usage_cores=usage) for usage in usages]
    shuffled = random.sample(containers, len(containers))
    assert provision(*containers) == provision(*shuffled)
