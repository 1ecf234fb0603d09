"""A load is one line of text: an amount, or a curve between two; what cannot be read is refused in words."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.pods.manifest import PodRecord, read_pod
from shared.errors import Refused
from sublet.load.curve import SHAPES, LoadCurve, read_curve
from sublet.load.demand import BASE_BYTES, LOAD, MEMORY_LOAD, SimDemand, loads_of, read_cores, read_memory

AMOUNTS = st.floats(0, 512, allow_nan=False)


def curves() -> st.SearchStrategy[LoadCurve]:
    def ordered(shape: str, first: float, second: float, period_s: float) -> LoadCurve:
        return LoadCurve(min(first, second), max(first, second), shape, period_s)

    return st.builds(ordered, st.sampled_from(("", *SHAPES)), AMOUNTS, AMOUNTS, st.floats(1, 86_400))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("2.5", {0: 2.5, 1000: 2.5}, id="an amount"),
        pytest.param("500m", {0: 0.5}, id="milli-cores"),
        pytest.param("sine:1..3:60s", {0: 1, 15: 2, 30: 3, 45: 2, 60: 1, 90: 3}, id="sine"),
        pytest.param("square:1..3:1m", {0: 1, 29: 1, 30: 3, 59: 3, 60: 1}, id="square"),
        pytest.param("ramp:0..4:1h", {0: 0, 900: 1, 3600: 4, 9000: 4}, id="ramp"),
    ],
)
def test_a_curve_has_its_amount_at_each_time(text: str, at: dict[float, float]) -> None:
    curve = read_cores(text)
    assert {since_s: curve.at(since_s) for since_s in at} == pytest.approx(at)


@given(curves(), st.floats(-10, 1e6))
def test_a_curve_stays_between_its_ends(curve: LoadCurve, since_s: float) -> None:
    assert curve.low - 1e-9 <= curve.at(since_s) <= curve.high + 1e-9


@given(curves().filter(lambda curve: curve.shape in ("sine", "square")), st.integers(0, 100))
def test_a_wave_comes_again_after_its_period(curve: LoadCurve, count: int) -> None:
    assert curve.at(count * curve.period_s) == pytest.approx(curve.at(0), abs=1e-6) or curve.shape == "square"


@given(curves().filter(lambda curve: curve.shape == "ramp"), st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_ramp_never_falls(curve: LoadCurve, first: float, second: float) -> None:
    assert curve.at(max(first, second)) >= curve.at(min(first, second))


@given(curves())
def test_the_words_of_a_curve_are_read_back_as_it(curve: LoadCurve) -> None:
    again = read_curve(curve.words(1), float, 1e9)
    assert again.shape == curve.shape
    assert again.high == pytest.approx(curve.high, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "want a number"),
        ("much", "'much': quantity 'much'"),
        ("-1", "-1 is out of bounds; want 0 to 512"),
        ("1e9", "want 0 to 512"),
        ("nan", "quantity 'nan'"),
        ("sinus:1..2:60s", "'sinus:1..2:60s': want one amount, or sine|square|ramp:LOW..HIGH:PERIOD"),
        ("sine:1..2", "want one amount"),
        ("sine:1:60s", "want one amount"),
        ("sine:3..1:60s", "LOW 3 is above HIGH 1"),
        ("sine:1..900:60s", "900 is out of bounds"),
        ("sine:1..2:0s", "PERIOD 0s is out of bounds; want 1s to 86400s"),
        ("sine:1..2:48h", "PERIOD 48h is out of bounds"),
        ("sine:1..2:60", "want one amount"),
        ("sine:1..2:60s:", "want one amount"),
        ("sine:1..2:\uff160s", "want one amount"),
        ("9" * 101, "has 101 characters, at most 100"),
    ],
)
def test_what_is_no_load_is_refused_with_what_is_wanted(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        read_cores(text)
    assert word in str(refused.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_cores, read_memory):
        with contextlib.suppress(ValueError):
            assert 0 <= read(text).low <= read(text).high


def record(containers: int, **annotations: str) -> PodRecord:
    keys = {"load": LOAD, "memory": MEMORY_LOAD}
    meta = {"name": "web", "annotations": {keys[name]: text for name, text in annotations.items()}}
    runs = [{"name": f"c{index}", "command": ["stress", "-c", "3"]} for index in range(containers)]
    return read_pod({"kind": "Pod", "metadata": meta, "spec": {"containers": runs}}, "0b").record


def test_a_pods_annotations_say_its_load_and_its_containers_share_it() -> None:
    loads = loads_of(record(2, load="sine:1..3:60s", memory="1Gi"))
    assert [load.at(30) for load in loads.values()] == [SimDemand(1.5, 512 << 20)] * 2


def test_what_no_annotation_says_is_its_commands() -> None:
    assert loads_of(record(1, memory="1Gi"))["c0"].at(0) == SimDemand(3, 1 << 30)
    assert loads_of(record(1, load="0.5"))["c0"].at(0) == SimDemand(0.5, BASE_BYTES)


def test_an_annotation_that_cannot_be_read_names_pod_key_and_value() -> None:
    with pytest.raises(Refused, match=r"pod default/web: annotation sim.sublet/load 'lots': .*want one amount"):
        loads_of(record(1, load="lots"))
