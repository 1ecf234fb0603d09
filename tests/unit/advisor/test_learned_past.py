"""What a policy has learned goes on in the next life of the advisor, or begins anew; nothing in between."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from advisor_world import MakeFields, MakePod, MakeSample, Node
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.coverage import Coverage
from services.advisor.core.model.machine import Bounds
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.policy import PolicyPast
from services.advisor.core.prediction.coverage import SPANS_S, Horizon
from services.advisor.core.prediction.histogram import CPU_CORES, Histogram
from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.core.prediction.peak import Peak
from services.advisor.core.prediction.stored_margin import (
    MAX_MARGINS_BYTES,
    MOST_AWAY_S,
    MOST_NAME_CHARACTERS,
    MOST_REGIONS,
    MOST_WEIGHT,
    margins_of,
    margins_text,
)
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.learned_past import KEEP_S, MAX_PAST_BYTES, MOST_STATES, LearnedPast
from services.advisor.policies import adaptive, canonical
from services.advisor.policies.adaptive import AdaptiveSettings
from shared.adapters.files.past import PastFile
from shared.errors import Unavailable

WALL_S = 1_800_000_000.0
RULES = AdaptiveSettings().rules
LEARNING, CAUTION = RULES.learning, RULES.caution
needs = st.lists(st.floats(0, 60), min_size=1, max_size=40)


def learned(needs: list[float], before: LearnedMargin | None = None, start_s: float = 0.0) -> LearnedMargin:
    margin = before or LearnedMargin()
    for number, need in enumerate(needs):
        margin = margin.observe(need, start_s + 12.0 * number, 48, LEARNING)
    return margin


@given(before=needs, after=needs)
def test_what_was_written_and_read_goes_on_as_after_a_silence(before: list[float], after: list[float]) -> None:
    found, why = margins_of(margins_text({"share": learned(before)}, WALL_S), WALL_S + 60)
    assert why == ""
    again, _ = margins_of(margins_text(found, WALL_S), WALL_S)
    assert again == found
    assert found["share"].rises == learned(before).rises
    assert found["share"].coverage == learned(before).coverage
    assert found["share"].lines.mean_cores == learned(before).lines.mean_cores
    # The unit of the weights is another one.
    assert found["share"].observe(7.0, 1e4, 48, LEARNING).lines.bound_cores(48, CAUTION) == pytest.approx(
        learned([7.0], learned(before), 1e4).lines.bound_cores(48, CAUTION)
    )
    kept = [(horizon.rises, horizon.coverage) for horizon in found["share"].horizons]
    assert kept == [(horizon.rises, horizon.coverage) for horizon in learned(before).horizons]
    # A silence of an hour: nothing of it is a rise, and the window that was open is counted once more.
    silent = learned(after[:1], learned(before), 1e4)
    resumed = learned(after[:1], found["share"], 1e4)
    assert resumed.last.rise_cores == silent.last.rise_cores
    assert resumed.learned_s == silent.learned_s


def test_lines_that_do_not_count_the_same_rises_are_learned_anew() -> None:
    stored = json.loads(margins_text({"share": learned([5.0, 9.0] * 50)}, WALL_S))
    stored["regions"]["share"]["lines"]["tails"][0][0] += 40.0
    found, why = margins_of(json.dumps(stored).encode(), WALL_S)
    assert why == ""
    assert found["share"].lines == LearnedMargin().lines
    assert found["share"].rises.weights, "nothing else is forgotten for it"


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


def largest(names: int) -> dict[str, LearnedMargin]:
    """So many regions with names and weights of the most bytes, in every bucket of each histogram."""
    full = Histogram(dict.fromkeys(range(len(CPU_CORES.ends)), 0.00012345678901234567))
    margin = replace(
        learned([60.0 / 7] * 5), usual=Peak(full, value=60.0 / 7), rises=full, learned_s=1e5 / 7,
        horizons=tuple(Horizon(full, Coverage(100 / 7, 90 / 7, 80 / 7)) for _ in SPANS_S),
    )  # fmt: skip
    return {f"{number:03d}".ljust(MOST_NAME_CHARACTERS, "\x01"): margin for number in range(names)}


@pytest.mark.parametrize(("names", "horizons"), [(1, True), (MOST_REGIONS, False), (2 * MOST_REGIONS, False)])
def test_the_largest_past_can_be_read_again_and_leaves_out_what_nothing_is_sized_by(names: int, horizons: bool) -> None:
    text = margins_text(largest(names), WALL_S)
    assert len(text) <= MAX_MARGINS_BYTES
    found, why = margins_of(text, WALL_S)
    assert (why, len(found)) == ("", min(names, MOST_REGIONS))
    first = next(iter(found.values()))
    assert len(first.usual.histogram.weights) == len(first.rises.weights) == len(CPU_CORES.ends)
    assert [bool(horizon.rises.weights) for horizon in first.horizons] == [horizons] * len(SPANS_S)


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
    virtual(decided(Node({"policy": "canonical"}, past=file), busy, passes=2))
    assert file.writes == 0


Decides = Callable[[ConfiguredPolicy], Round]
CANONICAL = ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings())
ADAPTIVE_POLICY = ConfiguredPolicy(adaptive.POLICY, AdaptiveSettings())


@pytest.fixture
def decides(pod: MakePod, sample: MakeSample) -> Decides:
    """The first round of a policy on a node with one busy tenant."""
    seen = view_of(sample(pod("a", cpu_usage_cores=5.0)), Bounds.of(48, smt=True))
    return lambda chosen: decide(seen, 0.0, chosen, SizingRules(), None)


def test_what_canonical_decided_meanwhile_is_not_written(decides: Decides) -> None:
    file = Kept(b"what it has learned")
    past = LearnedPast(file)
    past.learn(adaptive.POLICY, decides(CANONICAL))
    assert past.states == {}
    past.save(adaptive.POLICY, 0.0, WALL_S)
    assert (file.text, file.writes) == (b"what it has learned", 0)


def test_without_news_the_file_stays_as_old_as_it_is(decides: Decides) -> None:
    """Written again it would never grow too old."""
    file = Kept()
    past = LearnedPast(file)
    past.learn(adaptive.POLICY, decides(ADAPTIVE_POLICY))
    past.save(adaptive.POLICY, 0.0, WALL_S)
    past.save(adaptive.POLICY, KEEP_S, WALL_S + KEEP_S)
    assert file.writes == 1


def test_the_newest_state_of_each_region_is_kept_and_of_so_many(decides: Decides) -> None:
    past, done = LearnedPast(None), decides(ADAPTIVE_POLICY)
    first, last = learned([5.0]), learned([9.0])
    past.learn(adaptive.POLICY, replace(done, region_states={"away": first, "pool": first}))
    past.learn(adaptive.POLICY, replace(done, region_states={"pool": last}))
    assert (past.states["away"], past.states["pool"]) == (first, last)
    for number in range(2 * MOST_STATES):
        past.learn(adaptive.POLICY, replace(done, region_states={f"pool-{number}": first}))
    assert len(past.states) == MOST_STATES == MOST_REGIONS
    assert {"share", f"pool-{2 * MOST_STATES - 1}"} <= set(past.states)
    assert "away" not in past.states


def failing(*_: Any) -> Any:
    raise RuntimeError("not of a kind that anybody expects")


def test_a_policy_that_cannot_tell_or_read_its_past_does_not_end_the_advisor(decides: Decides) -> None:
    file = Kept(b"what it has learned")
    past, policy = LearnedPast(file), replace(adaptive.POLICY, past=PolicyPast(failing, failing))
    past.recall(policy, 0.0, WALL_S)
    assert past.states == {}
    past.learn(policy, decides(ADAPTIVE_POLICY))
    past.save(policy, 0.0, WALL_S)
    assert file.text == b"what it has learned"


async def after_trouble(node: Node, fields: dict[str, Any], trouble: Callable[[], Awaitable[None]]) -> str:
    """Learn for half a minute, live through something, and say who decides in the next round but one."""
    async with node.running():
        for _ in range(15):
            await node.measure(fields)
            await asyncio.sleep(2.0)
        await trouble()
        await node.measure(fields)
        await asyncio.sleep(2.0)
        await node.measure(fields)
    return node.advices[-1].why[0].rule


def test_a_round_of_canonical_does_not_cost_what_was_learned(virtual: Virtual, busy: dict[str, Any]) -> None:
    slow = {**ADAPTIVE, "policy_retry_s": 10.0}
    file = Kept()
    node = Node(slow, past=file)
    meanwhile: list[str] = []

    async def trouble() -> None:
        node.app._pass_over("a round was slow", "policy_slow", node.clock.monotonic())
        for _ in range(5):
            await node.measure(busy)
            meanwhile.append(node.advices[-1].policy)
            await asyncio.sleep(2.5)

    assert "learned margin" in virtual(after_trouble(node, busy, trouble))
    assert meanwhile == ["canonical"] * 4 + meanwhile[4:]
    assert json.loads(present(file.text))["regions"]["share"]["learned_s"] >= 28, "what is kept is the newest"


def test_pools_that_begin_to_overlap_do_not_cost_what_was_learned(
    virtual: Virtual, busy: dict[str, Any], pod: MakePod, fields: MakeFields
) -> None:
    """CPUs that go on and off change the shape of the pools: the last sizes are worth nothing then, the past is."""
    few = fields(pod("a", cpu_usage_cores=1.0), node={"online_cpus": "0-1"})
    node = Node(ADAPTIVE)

    async def trouble() -> None:
        await node.measure(few)

    assert "learned margin" in virtual(after_trouble(node, busy, trouble))


@pytest.mark.parametrize("weight", [1e6, 1e12])
def test_no_past_outweighs_what_a_month_can_teach(weight: float) -> None:
    stored = json.loads(good())
    stored["regions"]["share"] |= {"rises": [[0, weight]], "usual": [[0, weight]]}
    found, why = margins_of(json.dumps(stored).encode(), WALL_S)
    assert why == ""
    share = found["share"]
    assert share.rises.weights == share.usual.histogram.weights == {0: pytest.approx(min(weight, MOST_WEIGHT))}


@pytest.mark.parametrize("needs", [[1e30, 5.0] * 100, [0.0, 1024.0] * 100])
def test_whatever_was_needed_can_be_written(needs: list[float]) -> None:
    text = margins_text({"share": learned(needs), "n" * 513: LearnedMargin()}, WALL_S)
    assert set(margins_of(text, WALL_S)[0]) == {"share"}


def test_the_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "policy-past.json").write_bytes(b" " * (MAX_PAST_BYTES + 100))
    text = present(PastFile(tmp_path / "policy-past.json", MAX_PAST_BYTES).read())
    assert "at most" in margins_of(text, WALL_S)[1]
