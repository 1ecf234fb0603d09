"""A wall clock that jumps every ten seconds while pods are evicted, with lives of the evictor in between: nothing that
is decided, counted or written about it is another. Time is virtual; the ledger is the real one.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "unit/evictor"))

from evictor_world import GIB, Node, pod, short_of_memory

from shared.adapters.clock import LoopClock

Run = Callable[[Coroutine[Any, Any, Any]], Any]
STEPS_HOURS = (-24, -1, 1, 24)
PERIODS, PODS = 120, 8


class Jumping(LoopClock):
    """Time goes on as it does; what the wall says of it jumps."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed

    def wall(self) -> datetime:
        ten = int(self.monotonic() // 10)
        return super().wall() + timedelta(hours=random.Random(self._seed * 1000 + ten).choice(STEPS_HOURS))


async def story(folder: Path, clock: LoopClock) -> tuple[Any, ...]:
    """What has happened to whom, when by the time that goes on, and how often."""
    folder.mkdir()
    limits = {"limit": 3, "window_s": 60.0}  # of eight pods
    node = Node(folder, budgets={"node": limits})
    node.clock = clock
    node.bus._clock = clock
    node.evictor.clock = clock
    for voice in node.voices.values():
        voice.clock = clock
    await short_of_memory(node, *(pod(f"batch-{number}", memory=GIB) for number in range(PODS)))
    when: list[int] = []
    for _life in range(4):
        async with node.life():
            for _period in range(PERIODS // 4):
                await node.tick()
                when.append(len(node.story))
    return (node.story, node.kills, when), [intent.intent_id for intent in node.intents]


@pytest.mark.parametrize("seed", range(3))
def test_evictions_budgets_and_their_record_are_those_of_a_steady_clock(
    tmp_path: Path, virtual: Run, seed: int
) -> None:
    steady = virtual(story(tmp_path / "steady", LoopClock()))
    jumping = virtual(story(tmp_path / "jumping", Jumping(seed)))
    (phases, kills, _when), intents = jumping
    assert kills, "nobody was evicted"
    assert set(kills.values()) == {1}
    assert Counter(phase for _, phase in phases)["succeeded"] == len(kills)
    assert len(intents) == len(set(intents)) >= len(kills)
    assert jumping[0] == steady[0]
