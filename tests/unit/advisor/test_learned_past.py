"""What a policy has learned goes on in the next life of the advisor, or begins anew; nothing in between."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from advisor_world import MakeFields, MakePod, MakeSample, Node
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.machine import Bounds
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.core.prediction.stored_margin import (
    MAX_MARGINS_BYTES,
    MOST_AWAY_S,
    MOST_REGIONS,
    margins_of,
    margins_text,
)
from services.advisor.core.round.decide import SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.learned_past import KEEP_S, MAX_PAST_BYTES, LearnedPast
from services.advisor.policies import adaptive, canonical
from services.advisor.policies.adaptive import AdaptiveSettings
from shared.adapters.files.past import PastFile
from shared.errors import Unavailable

WALL_S = 1_800_000_000.0
RULES = AdaptiveSettings().rules
needs = st.lists(st.floats(0, 60), min_size=1, max_size=40)


def learned(needs: list[float], before: LearnedMargin | None = None, start_s: float = 0.0) -> LearnedMargin:
    margin = before or LearnedMargin()
    for number, need in enumerate(needs):
        margin = margin.observe(need, start_s + 12.0 * number, 48, RULES)
    return margin


@given(before=needs, after=needs)
def test_what_was_written_and_read_goes_on_as_after_a_silence(before: list[float], after: list[float]) -> None:
    found, why = margins_of(margins_text({"share": learned(before)}, WALL_S), WALL_S + 60)
    assert why == ""
    again, _ = margins_of(margins_text(found, WALL_S), WALL_S)
    assert again == found
    assert found["share"].rises == learned(before).rises
    # A silence of an hour: nothing of it is a rise, and the window that was open is counted once more.
    silent = learned(after[:1], learned(before), 1e4)
    resumed = learned(after[:1], found["share"], 1e4)
    assert present(resumed.last).rise_cores == present(silent.last).rise_cores
    assert resumed.learned_s == silent.learned_s


def good(**over: Any) -> bytes:
    return json.dumps(json.loads(margins_text({"share": learned([5.0] * 5)}, WALL_S)) | over).encode()


@pytest.mark.parametrize(
    ("text", "wall_s", "why"),
    [
        pytest.param(b"", WALL_S, "EOF", id="empty"),
        pytest.param(b"{", WALL_S, "EOF", id="torn"),
        pytest.param(b" " * (MAX_MARGINS_BYTES + 1), WALL_S, "at most", id="too large"),
        pytest.param(good(version=2), WALL_S, "version", id="of another version"),
        pytest.param(good(policy="other"), WALL_S, "policy", id="of another policy"),
        pytest.param(good(regions={"share": {}}), WALL_S, "usual", id="no margin"),
        pytest.param(good(), WALL_S - 1, "written -1 s ago", id="of the future"),
        pytest.param(good(), WALL_S + MOST_AWAY_S + 1, "written 86401 s ago", id="too old"),
    ],
)
def test_a_text_that_is_no_past_says_why(text: bytes, wall_s: float, why: str) -> None:
    found, said = margins_of(text, wall_s)
    assert found == {}
    assert why in said


def test_the_text_is_bounded_by_regions_and_buckets() -> None:
    restless = learned([60.0 * (number % 41) / 41 for number in range(400)])
    text = margins_text({f"pool-{number}": restless for number in range(2 * MOST_REGIONS)}, WALL_S)
    assert len(margins_of(text, WALL_S)[0]) == MOST_REGIONS
    assert len(text) <= MAX_MARGINS_BYTES == MAX_PAST_BYTES


class Kept:
    """A file of the past in memory, which may fail."""

    def __init__(self, text: bytes | None = None, *, broken: bool = False) -> None:
        self.text, self.broken, self.writes = text, broken, 0

    def read(self) -> bytes | None:
        if self.broken:
            raise Unavailable("cannot be read", reason="unreadable")
        return self.text

    def write(self, text: bytes) -> None:
        if self.broken:
            raise Unavailable("cannot be written", reason="unwritable")
        self.text, self.writes = text, self.writes + 1


ADAPTIVE = {"policy": "adaptive", "policies": {"adaptive": {"cold_start_s": 20}}}


async def decided(node: Node, fields: dict[str, Any], passes: int = 15) -> str:
    """Measure for a while, end, and say who decided at the end: the rule of the first reason."""
    async with node.running():
        for _ in range(passes):
            await node.measure(fields)
            await asyncio.sleep(2.0)
    return node.advices[-1].why[0].rule


@pytest.fixture
def busy(pod: MakePod, fields: MakeFields) -> dict[str, Any]:
    """A sample of one tenant that uses 5 cores."""
    return fields(pod("a", cpu_usage_cores=5.0))


@pytest.mark.parametrize("broken", [False, True])
def test_a_restart_goes_on_with_what_was_learned(virtual: Virtual, busy: dict[str, Any], broken: bool) -> None:
    file = Kept(broken=broken)

    async def lives() -> list[str]:
        return [await decided(Node(ADAPTIVE, past=file), busy, passes) for passes in (15, 2)]

    first, second = virtual(lives())
    assert "learned margin" in first
    assert ("learned margin" in second) is not broken, "without a past canonical decides while the node is cold"


def test_it_is_written_every_ten_minutes_and_at_the_end(virtual: Virtual, busy: dict[str, Any]) -> None:
    file = Kept()
    node = Node(ADAPTIVE, past=file)

    async def story() -> None:
        async with node.running():
            await node.measure(busy)
            assert file.writes == 0
            node.clock.ahead_s += KEEP_S
            await node.measure(busy)
            await node.measure(busy)
            assert file.writes == 1

    virtual(story())
    assert file.writes == 2


def test_a_policy_that_is_chosen_later_goes_on_with_its_past(virtual: Virtual, busy: dict[str, Any]) -> None:
    file = Kept()
    node = Node({}, past=file)

    async def story() -> None:
        await decided(Node(ADAPTIVE, past=file), busy)
        async with node.running():
            await node.measure(busy)
            node.app.reconfigure(ADAPTIVE)
            await node.measure(busy)

    virtual(story())
    assert "learned margin" in node.advices[-1].why[0].rule


def test_a_policy_without_a_past_leaves_the_file_as_it_is(virtual: Virtual, busy: dict[str, Any]) -> None:
    file = Kept(b"what another policy has learned")
    virtual(decided(Node({}, past=file), busy, passes=2))
    assert file.writes == 0


def test_what_canonical_decided_meanwhile_is_not_written(pod: MakePod, sample: MakeSample) -> None:
    file = Kept(b"what it has learned")
    view = view_of(sample(pod("a", cpu_usage_cores=5.0)), Bounds.of(48, smt=True))
    done = decide(view, 0.0, ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings()), SizingRules(), None)
    LearnedPast(file).keep(adaptive.POLICY, done, 0.0, WALL_S)
    assert file.text == b"what it has learned"


def test_the_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "policy-past.json").write_bytes(b" " * (MAX_PAST_BYTES + 100))
    text = present(PastFile(tmp_path / "policy-past.json", MAX_PAST_BYTES).read())
    assert "at most" in margins_of(text, WALL_S)[1]
