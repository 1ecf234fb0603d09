"""The story on machines that are idle, busy or get busy: it ends well, and blames only whom it should."""

from dataclasses import replace

import pytest
from demo_world import BUSY, IDLE, FakeStage

from shared.errors import Unavailable
from sublet.demo.machine.fit import CaseNoise, MachineReading
from sublet.demo.story import DemoEviction, DemoStory, StoryBroken, play
from sublet.demo.verdict import DemoClaim, failed, judge

LATENCY, POOL, EVICTION, EVENTS, REST = range(5)


async def told(stage: FakeStage) -> tuple[DemoStory, list[DemoClaim]]:
    story = await play(stage, lambda line: None)
    return story, judge(story)


async def test_on_an_idle_machine_everything_is_shown() -> None:
    stage = FakeStage()
    story, claims = await told(stage)
    assert [claim.outcome for claim in claims] == ["shown"] * 5
    assert story.disturbed == []
    assert stage.calls == ["look", "alone", "unmanaged", "look", "start", "sublet", "evict", "stop", "look"]
    assert "350 ms without Sublet, 18 ms with it" in claims[LATENCY].why


@pytest.mark.parametrize(
    ("stage", "claim", "why"),
    [
        pytest.param(
            FakeStage(p99_ms={"alone": 12.0, "unmanaged": 350.0, "sublet": 400.0}), LATENCY, "400", id="latency"
        ),
        pytest.param(FakeStage(narrowed=False), POOL, "no smaller CPU list", id="pool stays wide"),
        pytest.param(FakeStage(narrowed=False, wide=False), POOL, "did not get wide", id="pool never wide"),
        pytest.param(FakeStage(eviction=DemoEviction(False)), EVICTION, "not gone in time", id="eviction"),
        pytest.param(FakeStage(breaks={"evict": Unavailable("no bus")}), EVICTION, "no bus", id="no bus"),
        pytest.param(
            FakeStage(breaks={"sublet": StoryBroken("did not listen")}), POOL, "did not listen", id="no service"
        ),
        pytest.param(FakeStage(breaks={"start": Unavailable("qrm did not come")}), POOL, "qrm", id="no start"),
    ],
)
@pytest.mark.parametrize(
    ("machine", "outcome"), [(IDLE, "failed"), (BUSY, "not shown")], ids=["idle machine", "busy machine"]
)
async def test_what_takes_time_fails_on_an_idle_machine_alone(
    stage: FakeStage, claim: int, why: str, machine: MachineReading, outcome: str
) -> None:
    """On a busy one it is not shown, and the cause is said."""
    stage.readings = [machine]
    _, claims = await told(replace(stage, calls=[]))
    assert claims[claim].outcome == outcome
    assert why in claims[claim].why
    assert failed(claims) == (outcome == "failed")


@pytest.mark.parametrize("machine", [IDLE, BUSY])
@pytest.mark.parametrize(
    ("stage", "claim"),
    [
        (FakeStage(eviction=DemoEviction(True, lost=["event 1 is in the ledger and not in the stream"])), EVENTS),
        (FakeStage(left=["process 9 was left behind"]), REST),
    ],
)
async def test_a_lost_event_or_a_leftover_fails_on_every_machine(
    stage: FakeStage, claim: int, machine: MachineReading
) -> None:
    _, claims = await told(replace(stage, readings=[machine], calls=[]))
    assert claims[claim].outcome == "failed"
    assert failed(claims)


async def test_sublet_is_ended_and_looked_after_whatever_breaks() -> None:
    for part in ("alone", "unmanaged", "start", "sublet", "evict"):
        stage = FakeStage(breaks={part: TimeoutError()})
        await told(stage)
        assert stage.calls[-2:] == ["stop", "look"], part


async def test_a_bug_of_the_demo_is_not_swallowed_and_sublet_is_ended() -> None:
    stage = FakeStage(breaks={"evict": ZeroDivisionError()})
    with pytest.raises(ZeroDivisionError):
        await told(stage)
    assert stage.calls[-1] == "stop"


async def test_what_sublet_has_no_part_in_is_never_its_failure() -> None:
    _, claims = await told(FakeStage(breaks={"alone": StoryBroken("the service did not listen")}))
    assert (claims[LATENCY].outcome, claims[LATENCY].why) == (
        "not shown",
        "the service alone: the service did not listen",
    )
    assert not failed(claims)


async def test_where_batch_work_does_no_harm_there_is_nothing_to_show() -> None:
    _, claims = await told(FakeStage(p99_ms={"alone": 12.0, "unmanaged": 14.0, "sublet": 11.0}))
    assert claims[LATENCY].outcome == "not shown"
    assert "hardly slowed" in claims[LATENCY].why


async def test_a_request_without_an_answer_counts_as_the_time_out() -> None:
    _, claims = await told(FakeStage(p99_ms={"alone": 12.0, "unmanaged": None, "sublet": 18.0}))
    assert "5000 ms without Sublet" in claims[LATENCY].why


async def test_who_disturbs_in_the_middle_is_said_in_its_place() -> None:
    story, _ = await told(FakeStage(readings=[IDLE, BUSY, IDLE], noise=CaseNoise(others_cores=1.0)))
    assert [line.split(":")[0] for line in story.disturbed] == [
        "during “the service alone”",
        "during “with unmanaged batch work”",
        "before Sublet started",
        "during “with batch work under Sublet”",
    ]


async def test_the_loads_are_those_of_the_first_look() -> None:
    stage = FakeStage(readings=[BUSY, IDLE])
    await told(stage)
    assert stage.loads is not None
    assert stage.loads.spike_per_s < 100
