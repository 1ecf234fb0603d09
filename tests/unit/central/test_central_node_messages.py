"""Every node's messages come in by one door: the newest of each, bounded, and a node speaks for itself alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central import node_messages
from services.central.node_messages import FORGET_S, MessageBounds, NodeMessages
from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.offer import NodeOffer, ResourceAmounts
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.wire import Wire

BOUNDS = MessageBounds(max_bytes=4096, period_s=10.0, per_s=1.0, burst=3)


class HandClock(LoopClock):
    """A clock that a test sets."""

    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


class Door:
    """A door, and what came through."""

    def __init__(self, bounds: MessageBounds = BOUNDS) -> None:
        self.clock, self.taken = HandClock(), list[tuple[NodeOffer, float]]()
        self.messages = NodeMessages(
            NodeOffer, self.clock, bounds, lambda m, at_s: self.taken.append((m, at_s)), service="x"
        )

    def hear(self, data: bytes, node: str = "a") -> bool:
        before = len(self.taken)
        self.messages.hear(Received(state_subject(NodeOffer, node), data, {}))
        return len(self.taken) > before


def offer(seq: int = 1, node: str = "a", boot_id: str = "0123456789abcdef", cpu_millis: int = 1000) -> bytes:
    return NodeOffer(
        node=node, boot_id=boot_id, seq=seq, sent_at="2026-01-01T00:00:00Z",
        reclaimed=ResourceAmounts(cpu_millis=cpu_millis),
    ).encode()  # fmt: skip


def test_a_new_message_is_handed_on_with_the_time_at_which_it_came() -> None:
    door = Door()
    assert door.hear(offer())
    ((message, at_s),) = door.taken
    assert (message.node, message.reclaimed, at_s) == ("a", ResourceAmounts(cpu_millis=1000), 1000.0)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\xff\xfe", "not text"),
        (b"[" * 4000, "deep"),
        (b"x" * 5000, "too large"),
        (offer(node="b"), "of another node"),
        (offer(cpu_millis=1000).replace(b"1000", b"-1"), "below 0"),
        (offer(cpu_millis=1000).replace(b"1000", b"NaN"), "not a number"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_used_changes_nothing(data: bytes, why: str) -> None:
    door = Door()
    assert not door.hear(data), why
    assert door.hear(offer()), "a good one behind it is taken"


def test_what_is_older_than_what_was_heard_is_refused() -> None:
    door = Door(MessageBounds(4096, 10.0, 1.0, 4))
    assert door.hear(offer(seq=7))
    assert not door.hear(offer(seq=7))
    assert not door.hear(offer(seq=6))
    assert door.hear(offer(seq=1, boot_id="f" * 16)), "another life begins anew"


def test_a_node_that_says_too_much_costs_the_others_nothing() -> None:
    door = Door()
    assert [door.hear(offer(seq)) for seq in range(1, 6)] == [True, True, True, False, False]
    assert door.hear(offer(node="b"), node="b")
    door.clock.now_s += 1.0
    assert door.hear(offer(9))


def test_invented_names_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_messages, "MAX_NODES", 2)
    door = Door()
    assert [door.hear(offer(node=name), node=name) for name in ("a", "b", "c")] == [True, True, False]
    door.clock.now_s += FORGET_S / 2
    assert door.hear(offer(2, node="b"), node="b")
    door.clock.now_s += FORGET_S / 2 + 1
    assert door.hear(offer(node="c"), node="c"), "a has been silent for too long"
    assert not door.hear(offer(3), node="a")


def test_nodes_that_are_gone_are_forgotten() -> None:
    door = Door()
    assert door.hear(offer(seq=9))
    door.messages.retain(["b"])
    assert door.hear(offer(seq=1)), "nothing is known of its numbers any more"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 6)), max_size=20))
def test_numbers_only_rise(said: list[tuple[str, int]]) -> None:
    door = Door(MessageBounds(4096, 10.0, 100.0, 100))
    for node, seq in said:
        door.hear(offer(seq, node=node), node=node)
    for node in "ab":
        heard = [message.seq for message, _ in door.taken if message.node == node]
        assert heard == sorted(set(heard))
        assert max((seq for name, seq in said if name == node), default=None) == max(heard, default=None)


async def test_they_come_over_the_bus() -> None:
    door, bus = Door(), MemoryBus()
    await door.messages.listen(bus)
    wire = Wire(bus, LoopClock(), node="node-1.local", service="reporter")
    await wire.publish(wire.stamp(NodeOffer))
    await bus.drain()
    assert [message.node for message, _ in door.taken] == ["node-1.local"]
