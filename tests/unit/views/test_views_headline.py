"""The first line of `status` and `top`: it says ready only where nothing is silent, paused or refused."""

from collections.abc import Callable
from typing import Any

import pytest

from sublet.views.facts import read
from sublet.views.headline import Headline, headline

Answers = dict[str, Any]


@pytest.fixture
def well(answers: Answers) -> Answers:
    """Every service answers and nothing is wrong."""
    answers["advisor"] = {}
    answers["reporter"]["ready"] = True
    answers["central"]["config"] = {"refused": None}
    return answers


def of(answers: Answers) -> Headline:
    return headline(read("node1", answers))


def test_a_node_on_which_all_is_well_is_ready(well: Answers) -> None:
    said = of(well)
    assert said.ready
    assert said.words() == "node1  ready  mode enforce  Sublet 0.1.0  up 2h5m  3 evicted in 1h"


def _paused(answers: Answers) -> None:
    answers["evictor"]["conditions"] = [{"type": "EvictionsPaused", "message": "by hand"}]


def _refused(answers: Answers) -> None:
    answers["central"]["config"] = {"refused": "no section 'evicter'"}


def _unready(answers: Answers) -> None:
    answers["reporter"]["ready"] = False


def _both(answers: Answers) -> None:
    _paused(answers)
    _unready(answers)


def silent(service: str) -> Callable[[Answers], None]:
    def change(answers: Answers) -> None:
        answers[service] = None

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(_paused, "evictions paused", id="paused"),
        pytest.param(_refused, "configuration refused", id="refused"),
        pytest.param(_unready, "not ready", id="not ready"),
        pytest.param(_both, "not ready, evictions paused", id="two at once"),
        pytest.param(silent("advisor"), "advisor silent", id="a service is silent"),
        pytest.param(silent("reporter"), "not known to be ready", id="the reporter is silent"),
    ],
)
def test_whatever_is_wrong_stands_in_the_place_of_ready(
    well: Answers, change: Callable[[Answers], None], words: str
) -> None:
    change(well)
    said = of(well)
    assert not said.ready
    assert said.words().split("  ")[1] == words


@pytest.mark.parametrize("process", [None, 5, [], {"up_s": "x", "version": 3}])
@pytest.mark.parametrize("evicted", [None, "x", True, {}])
def test_nonsense_about_process_and_evictions_counts_as_not_told(
    well: Answers, process: object, evicted: object
) -> None:
    well["evictor"] |= {"process": process, "evicted_last_hour": evicted}
    assert of(well).words() == "node1  ready  mode enforce  Sublet -  up -  - evicted in 1h"


def test_rehearsals_are_counted_apart_where_there_are_any(well: Answers) -> None:
    well["evictor"] |= {"evicted_last_hour": 0, "rehearsed_last_hour": 2}
    assert of(well).words().endswith("0 evicted in 1h, 2 rehearsed")
    well["evictor"]["rehearsed_last_hour"] = 0
    assert of(well).words().endswith("0 evicted in 1h")
    well["evictor"]["rehearsed_last_hour"] = "\x1b[2J"
    assert of(well).words().endswith("0 evicted in 1h")


def test_the_longest_life_counts(well: Answers) -> None:
    well["qrm"]["process"] = {"version": "0.1.0", "revision": "0a1b2c3d4e5f", "up_s": 90_000}
    assert "Sublet 0.1.0 (0a1b2c3d4e5f)  up 1d  " in of(well).words()
