"""The demo's story: the service alone, next to unmanaged batch work, next to batch work under Sublet, and one
eviction.

The stage does the work, so the story can also run on a simulated machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.errors import SubletError
from sublet.demo.case import DemoCase
from sublet.demo.machine.fit import DemoLoads, MachineReading, disturbances, fit, noise, words

TITLES = {
    "alone": "the service alone",
    "unmanaged": "with unmanaged batch work",
    "sublet": "with batch work under Sublet",
}
SHORT_TITLES = {"alone": "alone", "unmanaged": "unmanaged", "sublet": "Sublet"}
"""The same where there is little room."""


class StoryBroken(SubletError):
    """A part of the story could not be played."""


@dataclass
class DemoEviction:
    """What was seen of the eviction."""

    succeeded: bool = False
    breach_to_call_s: float | None = None
    chain: list[dict[str, Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Events that are missing from the stream, or in it twice."""


@dataclass
class DemoStory:
    """What happened."""

    loads: DemoLoads | None = None
    cases: list[DemoCase] = field(default_factory=list)
    readings: dict[str, MachineReading] = field(default_factory=dict)
    """By when they were taken."""
    wide: bool | None = None
    """Whether the reclaimed pool got wide before the spike; None where it did not come to that."""
    eviction: DemoEviction | None = None
    disturbed: list[str] = field(default_factory=list)
    """What disturbed the measurements, in the order of time."""
    left: list[str] = field(default_factory=list)
    """What Sublet left behind."""
    broken: dict[str, str] = field(default_factory=dict)
    """Parts that could not be played, and why."""


class Stage(Protocol):
    """Where the story is played."""

    async def reading(self) -> MachineReading:
        """Look at the machine while nothing of the demo runs."""
        ...

    async def measure(self, case: DemoCase, loads: DemoLoads) -> bool:
        """Run one case and fill it in; False where the reclaimed pool did not get wide before the spike."""
        ...

    async def start(self) -> None:
        """Start Sublet."""
        ...

    async def evict(self) -> DemoEviction:
        """Bring one eviction about."""
        ...

    async def stop(self) -> list[str]:
        """End Sublet; what it left behind."""
        ...


async def play(stage: Stage, say: Callable[[str], None]) -> DemoStory:
    """Run the three cases, then the eviction; about 80 s. A part that breaks leaves the others as they are."""
    story = DemoStory()
    story.loads = fit(await _look(story, stage, "before", say))
    for number, name in enumerate(("alone", "unmanaged"), start=1):
        await _case(story, stage, name, f"{number}/3", say)
    await _look(story, stage, "before Sublet started", say)
    try:
        await _under_sublet(story, stage, say)
    finally:
        story.left = await stage.stop()
    await _look(story, stage, "afterwards", say)
    return story


async def _under_sublet(story: DemoStory, stage: Stage, say: Callable[[str], None]) -> None:
    try:
        await stage.start()
    except (SubletError, TimeoutError) as error:
        story.broken["start"] = f"Sublet did not start: {error}"
        return
    story.wide = await _case(story, stage, "sublet", "3/3", say)
    say("     memory: a batch pod takes more than is free")
    try:
        story.eviction = await stage.evict()
    except (SubletError, TimeoutError) as error:
        story.broken["eviction"] = str(error) or "the time was over"


async def _case(story: DemoStory, stage: Stage, name: str, number: str, say: Callable[[str], None]) -> bool | None:
    case = DemoCase(name, TITLES[name])
    say(f"{number}  {case.title}")
    if story.loads is None:
        return None
    try:
        wide = await stage.measure(case, story.loads)
    except (SubletError, TimeoutError) as error:
        story.broken[name] = f"{case.title}: {error if str(error) else 'the time was over'}"
        return None
    story.cases.append(case)
    story.disturbed += noise(f"during \u201c{case.title}\u201d", story.readings["before"].cpus, case.noise)
    return wide


async def _look(story: DemoStory, stage: Stage, when: str, say: Callable[[str], None]) -> MachineReading:
    story.readings[when] = reading = await stage.reading()
    story.disturbed += disturbances(when, reading)
    say(f"     {when}: {words(reading)}")
    return reading
