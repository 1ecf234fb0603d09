"""What was learnt of the pods' use goes on in the next life of the reporter, or begins anew; nothing in between."""

import json
from pathlib import Path
from typing import Any

import pytest
from fixture_types import NewSample
from hypothesis import given
from hypothesis import strategies as st
from mid_node import NewNode, node_of_ten, reading

from services.reporter.core.mid.peaks import UsageHistory, UsedAmounts
from services.reporter.core.mid.stored_past import MAX_PAST_BYTES, MOST_AWAY_S, past_of, past_text
from services.reporter.mid_node_offer import KEEP_S, MidNodeOffer
from services.reporter.offer_over_time import ColocationInput
from services.reporter.settings import ReporterSettings
from shared.adapters.files.past import PastFile
from shared.errors import Unavailable

WALL_S = 1_800_000_000.0


def learnt(millis: list[int]) -> UsageHistory:
    history = UsageHistory()
    for minute, used in enumerate([*millis, 0]):
        history.observe({"aa": UsedAmounts(used, used << 20)}, minute * 60.0)
    return history


@given(st.lists(st.integers(0, 50_000), min_size=1, max_size=20), st.lists(st.integers(0, 50_000), max_size=20))
def test_a_past_that_was_written_and_read_is_the_same_and_goes_on_the_same(before: list[int], after: list[int]) -> None:
    one = learnt(before)
    other, why = past_of(past_text(one, WALL_S), 0.0, WALL_S + 60)
    assert why == ""
    # In the middle of no minute, as the next life begins.
    goes_on, _ = past_of(past_text(one, WALL_S), 0.0, WALL_S)
    for history in (other, goes_on):
        for minute, used in enumerate([*after, 0]):
            history.observe({"aa": UsedAmounts(used, used << 20)}, minute * 60.0)
    assert other.models == goes_on.models
    assert other.models["aa"].minutes == len(before) + len(after)
    whole = learnt([*before, *after])
    assert other.peak("aa", least_minutes=0) == whole.peak("aa", least_minutes=0)


def good(**over: Any) -> bytes:
    return json.dumps(json.loads(past_text(learnt([100]), WALL_S)) | over).encode()


@pytest.mark.parametrize(
    ("text", "wall_s", "why"),
    [
        pytest.param(b"", WALL_S, "EOF", id="empty"),
        pytest.param(b"{", WALL_S, "EOF", id="torn"),
        pytest.param(b" " * (MAX_PAST_BYTES + 1), WALL_S, "at most", id="too large"),
        pytest.param(good(version=2), WALL_S, "version", id="of another version"),
        pytest.param(good(models={"a": {}}), WALL_S, "minutes", id="not a model"),
        pytest.param(good(), WALL_S - 1, "written -1 s ago", id="of the future"),
        pytest.param(good(), WALL_S + MOST_AWAY_S + 1, "written 3601 s ago", id="too old"),
    ],
)
def test_what_is_no_past_is_none_and_says_why(text: bytes, wall_s: float, why: str) -> None:
    history, said = past_of(text, 0.0, wall_s)
    assert history.models == {}
    assert why in said
    assert len(said) < 300


@pytest.mark.parametrize(
    ("minutes", "reference_minute", "bucket"),
    [
        pytest.param(10, 0, 999, id="a bucket that is none"),
        pytest.param(10, 1 << 30, 3, id="a reference that lies ahead"),
        pytest.param(1 << 30, 0, 3, id="far more minutes than there were"),
    ],
)
def test_a_text_that_nobody_here_wrote_makes_a_past_that_goes_on(
    minutes: int, reference_minute: int, bucket: int
) -> None:
    histogram = {"reference_minute": reference_minute, "weights": [[bucket, 1.0]]}
    text = good(models={"aa": {"minutes": minutes, "cpu": histogram, "memory": histogram}})
    history, why = past_of(text, 0.0, WALL_S)
    assert why == ""
    for minute in range(40):
        history.observe({"aa": UsedAmounts(1000, 1 << 30)}, minute * 60.0)
    model = history.models["aa"]
    assert model.minutes == minutes + 39
    # What is observed now counts, whatever was told of the time before.
    assert sum(model.cpu.weights) >= 39


@pytest.fixture
def ten_cpus(sample: NewSample) -> NewNode:
    return node_of_ten(sample)


class Life:
    """One life of the offer, on a file that all lives share."""

    def __init__(self, path: Path, ten_cpus: NewNode, **over: Any) -> None:
        settings = ReporterSettings.model_validate({"mid": {"enabled": True, "cold_start_s": 600} | over})
        self.offer = MidNodeOffer(settings, PastFile(path, MAX_PAST_BYTES))
        self._ten_cpus = ten_cpus

    def work(self, seconds: int) -> int:
        """Run, with the clocks of a machine that has just started; gives the last offer."""
        offered = 0
        for now_s in range(0, seconds, 5):
            seen = ColocationInput(None, self._ten_cpus(reading("web", 1000)), 0.0, None, in_a_cluster=False)
            found = self.offer.smoothed(seen, float(now_s))
            self.offer.save(float(now_s), WALL_S + now_s)
            offered = 0 if found is None else found.cpu_millis
        return offered


def test_the_next_life_offers_at_once_what_the_last_one_has_learnt(tmp_path: Path, ten_cpus: NewNode) -> None:
    path = tmp_path / "state/past.json"
    first = Life(path, ten_cpus)
    assert first.offer.recall(0.0, WALL_S) == ""
    offered = first.work(700)
    assert offered > 0
    first.offer.save(700.0, WALL_S + 700, at_the_end=True)
    next_life = Life(path, ten_cpus)
    assert next_life.offer.recall(0.0, WALL_S + 900) == ""
    assert next_life.work(10) == offered
    late = Life(path, ten_cpus)
    assert "at most 3600 are bridged" in late.offer.recall(0.0, WALL_S + 9000)
    assert late.work(10) == 0


def test_the_past_is_written_every_ten_minutes_and_only_while_the_offer_is_on(
    tmp_path: Path, ten_cpus: NewNode
) -> None:
    path = tmp_path / "past.json"
    life = Life(path, ten_cpus)
    life.offer.recall(0.0, WALL_S)
    life.work(int(KEEP_S))
    assert not path.exists()
    life.offer.save(KEEP_S, WALL_S)
    assert path.exists()
    off = Life(tmp_path / "off.json", ten_cpus, enabled=False)
    off.work(700)
    off.offer.save(2 * KEEP_S, WALL_S, at_the_end=True)
    assert not (tmp_path / "off.json").exists()


def test_a_file_that_cannot_be_read_or_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file = PastFile(tmp_path / "folder", 10)
    with pytest.raises(Unavailable, match="folder"):
        file.read()
    with pytest.raises(Unavailable, match="folder"):
        file.write(b"x")
    assert PastFile(tmp_path / "absent", 10).read() is None
    long = PastFile(tmp_path / "long", 10)
    long.write(b"x" * 100)
    assert len(long.read() or b"") == 11
