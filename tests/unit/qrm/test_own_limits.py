"""The way to a pod's own memory limit: nobody is killed for its being lowered, and nobody gets more than he said."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.memory.limits import MARGIN_BYTES, STEP_BYTES, MemoryUse, in_force, own_limit_steps
from services.qrm.core.writes.kubelet_defaults import restore_group
from shared.core.cgroups.knobs import UNLIMITED, Knob, Version
from shared.core.pods.limits import GroupLimits

MIB, GIB = 1 << 20, 1 << 30
HIGH, MAX = Knob.MEMORY_HIGH, Knob.MEMORY_MAX


@pytest.mark.parametrize(
    ("version", "limit", "hard", "use", "steps"),
    [
        (1, GIB, UNLIMITED, MemoryUse(0), [(MAX, GIB), (HIGH, UNLIMITED)]),
        (2, GIB, UNLIMITED, MemoryUse(GIB), [(MAX, GIB), (HIGH, UNLIMITED)]),
        (2, GIB, GIB, MemoryUse(GIB), []),
        (2, GIB, 4096, MemoryUse(0), []),
        (1, 100 * MIB, UNLIMITED, MemoryUse(200 * MIB), [(MAX, 200 * MIB + MARGIN_BYTES)]),
        (1, 100 * MIB, 210 * MIB, MemoryUse(200 * MIB), []),
        (1, 100 * MIB, 210 * MIB, MemoryUse(200 * MIB, 150 * MIB),
         [(MAX, 100 * MIB), (HIGH, UNLIMITED)]),
        (1, 100 * MIB, UNLIMITED, MemoryUse(GIB, GIB), [(MAX, GIB - STEP_BYTES), (HIGH, UNLIMITED)]),
        (2, 100 * MIB, UNLIMITED, MemoryUse(GIB),
         [(HIGH, GIB - STEP_BYTES), (MAX, GIB + MARGIN_BYTES)]),
        (2, 100 * MIB, UNLIMITED, MemoryUse(200 * MIB, 200 * MIB),
         [(HIGH, 100 * MIB), (MAX, 200 * MIB + MARGIN_BYTES)]),
        (2, 100 * MIB, GIB, MemoryUse(GIB - MIB), [(HIGH, GIB - MIB - STEP_BYTES)]),
    ],
    ids=["nothing in use", "just enough room", "in force", "somebody holds it lower", "v1, above use",
         "v1, never up again", "v1, page cache may go", "v1, one step of cache", "v2, one step",
         "v2, cache is pushed out first", "v2, never up again"],
)  # fmt: skip
def test_the_steps(version: Version, limit: int, hard: int, use: MemoryUse, steps: list[tuple[Knob, int]]) -> None:
    assert own_limit_steps(limit, hard, use, version) == steps


@dataclass
class Memory:
    """One group of a kernel. For a limit below what cannot be dropped version 2 kills, version 1 refuses."""

    version: Version
    held: int
    dropped: int
    hard: int = UNLIMITED
    high: int = UNLIMITED
    killed: bool = False

    @property
    def use(self) -> MemoryUse:
        return MemoryUse(self.held + self.dropped, self.dropped)

    def write(self, knob: Knob, value: int) -> None:
        if knob is HIGH and self.version == 1:
            return
        room = self.held + self.dropped if value == UNLIMITED else max(0, value - self.held)
        self.dropped = min(self.dropped, room)
        if knob is HIGH:
            self.high = value
        elif value != UNLIMITED and value < self.held and self.version == 1:
            pass  # EBUSY
        else:
            self.hard = value
            self.killed |= value != UNLIMITED and value < self.held

    def grow(self, more: int) -> bool:
        """What a program does; False where the limit in force does not let it."""
        if self.hard != UNLIMITED and self.held + more > self.hard:
            return False
        self.held += more
        room = GIB * GIB if self.hard == UNLIMITED else self.hard - self.held
        self.dropped = min(self.dropped, room)
        return True


SIZES = st.integers(0, 4 * GIB)


@given(st.sampled_from((1, 2)), st.integers(1, 2 * GIB), SIZES, SIZES, st.lists(st.integers(-GIB, GIB), max_size=12))
def test_nobody_is_killed_for_the_way_down_and_a_hard_limit_never_goes_up(
    version: Version, limit: int, held: int, cache: int, changes: list[int]
) -> None:
    memory = Memory(version, held, cache)
    for change in changes:
        before = memory.hard
        for knob, value in own_limit_steps(limit, memory.hard, memory.use, version):
            assert value == UNLIMITED or value >= limit
            memory.write(knob, value)
        assert not memory.killed
        assert before == UNLIMITED or in_force(before, memory.hard)
        if change < 0:
            memory.held = max(0, memory.held + change)
        elif not memory.grow(change):
            assert memory.held + change > limit, "who stays within his limit is never refused"


@given(st.sampled_from((1, 2)), st.integers(1, 2 * GIB), SIZES, SIZES)
def test_the_limit_is_in_force_once_there_is_room_for_it_and_then_nothing_is_left_to_do(
    version: Version, limit: int, held: int, cache: int
) -> None:
    memory = Memory(version, held, cache)
    for _ in range(2 + (held + cache) // STEP_BYTES):
        for knob, value in own_limit_steps(limit, memory.hard, memory.use, version):
            memory.write(knob, value)
    assert not memory.killed
    if held <= limit:
        assert (memory.hard, memory.high) == (limit, UNLIMITED)
    memory.held = memory.dropped = 0
    for knob, value in own_limit_steps(limit, memory.hard, memory.use, version):
        memory.write(knob, value)
    assert (memory.hard, memory.high) == (limit, UNLIMITED)
    assert own_limit_steps(limit, memory.hard, MemoryUse(limit), version) == []


@pytest.mark.parametrize(
    ("own", "hard", "memory"),
    [
        (GroupLimits(2, None), GIB, [UNLIMITED]),
        (GroupLimits(2, None), UNLIMITED, []),
        (GroupLimits(2, None), None, []),
        (GroupLimits(512, 2 * GIB), GIB, [2 * GIB]),
        (GroupLimits(512, MIB), GIB, []),
    ],
    ids=["lifted", "there is none", "no memory controller", "its own, which is higher", "its own is lower"],
)
def test_what_a_pod_gets_back(own: GroupLimits, hard: int | None, memory: list[int]) -> None:
    writes = list(restore_group("g", own, hard))
    assert [(w.knob, w.value) for w in writes[:2]] == [(Knob.CPU_IDLE, 0), (Knob.CPU_SHARES, own.cpu_shares)]
    assert [w.value for w in writes if w.knob is MAX] == memory
    assert [w.value for w in writes if w.knob is HIGH] == [UNLIMITED]
