"""The bridge: signed requests, what each answer leads to, and a place in the stream that survives."""

import asyncio
import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.clock import LoopClock
from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.subjects import STREAMS, event_filter, event_subject
from shared.contracts.eviction import EvictionEvent
from shared.contracts.ids import intent_id
from shared.errors import Refused, Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.ports import DurableMessage, Received
from sublet.bridge import lanes
from sublet.bridge import position as position_file
from sublet.bridge.bridge import Bridge, WantsNoMore
from sublet.bridge.http import retry_after_s
from sublet.bridge.position import BridgePosition
from sublet.bridge.request import (
    MAX_RETRY_AFTER_S,
    RETRY_CAP_S,
    HttpAnswer,
    read_secret,
    request_headers,
    signature,
    verdict,
    wait_s,
)

KEY = b"k" * 32


def event(number: int, namespace: str = "default") -> EvictionEvent:
    return EvictionEvent(
        node="n", boot_id="0" * 8, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), pod=f"pod-{number}",
        namespace=namespace, intent_id=intent_id("n", f"{number:x}", "p", number), pod_uid=f"{number:x}",
        qos="reclaimed_cores", plugin="p", scope="memory", phase="intended",
    )  # fmt: skip


def test_the_signature_is_the_standards_own_example() -> None:
    key = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == expected


@pytest.mark.parametrize("text", ["whsec_!", "whsec_" + base64.b64encode(b"short").decode(), ""])
def test_what_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="webhook secret"):
        read_secret(text)


def test_a_request_is_a_cloud_event_in_binary_mode() -> None:
    one = event(1)
    headers = request_headers(one, b"{}", {"traceparent": "00-a-b-01"}, KEY, 5)
    assert headers["ce-id"] == one.event_id
    assert headers["webhook-id"] == f"n/{one.event_id}"
    assert headers["content-type"] == "application/json"
    assert headers["traceparent"] == "00-a-b-01"
    assert headers["webhook-timestamp"] == "5"
    assert not {"ce-datacontenttype", "Nats-Msg-Id"} & headers.keys()


def test_without_a_key_nothing_is_signed() -> None:
    assert not [name for name in request_headers(event(1), b"", {}, None, 5) if name.startswith("webhook")]


@pytest.mark.parametrize(
    ("status", "means"),
    [(200, "done"), (204, "done"), (0, "again"), (301, "dead"), (400, "dead"), (401, "dead"), (408, "again"),
     (410, "stop"), (425, "again"), (429, "again"), (500, "again"), (503, "again")],
)  # fmt: skip
def test_what_an_answer_means(status: int, means: str) -> None:
    assert verdict(HttpAnswer(status)) == means


@given(st.integers(0, 100), st.floats(0, 1), st.none() | st.floats(-1e9, 1e9))
def test_a_wait_is_never_negative_and_never_for_ever(tries: int, roll: float, asked: float | None) -> None:
    pause_s = wait_s(HttpAnswer(503, asked), tries, roll)
    assert 0 <= pause_s <= (RETRY_CAP_S if asked is None else MAX_RETRY_AFTER_S)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, None), ("7", 7.0), ("soon", None), ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0)],
)
def test_retry_after_in_both_of_its_forms(text: str | None, seconds: float | None) -> None:
    assert retry_after_s(text, datetime(2026, 1, 1, tzinfo=UTC)) == seconds


class Receiver:
    """Answers in the order given, then 200, and in a blocked namespace as told; remembers what came when."""

    def __init__(self, clock: LoopClock, *answers: HttpAnswer | Exception) -> None:
        self.clock, self.answers = clock, list(answers)
        self.came: list[tuple[float, str]] = []
        self.blocked: dict[str, HttpAnswer] = {}

    async def __call__(self, one: EvictionEvent, _trace: Mapping[str, str]) -> HttpAnswer:
        self.came.append((self.clock.monotonic(), one.pod))
        if one.namespace in self.blocked:
            return self.blocked[one.namespace]
        answer = self.answers.pop(0) if self.answers else HttpAnswer(200)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def pods(self) -> list[str]:
        return [pod for _, pod in self.came]


class World:
    """A stream with events, a bridge, and a receiver."""

    def __init__(self, folder: Path, *answers: HttpAnswer | Exception, by_namespace: bool = False) -> None:
        self.by_namespace = by_namespace
        self.clock = LoopClock()
        self.bus = MemoryBus(clock=self.clock)
        self.receiver = Receiver(self.clock, *answers)
        self.folder = folder
        self.said: list[str] = []

    async def add(self, *numbers: int, namespace: str = "default") -> None:
        for spec in STREAMS:
            await self.bus.ensure_stream(spec)
        for number in numbers:
            one = event(number, namespace)
            await self.bus.publish_durable(
                DurableMessage(event_subject(one), one.encode(), msg_id=one.event_id, headers=event_headers(one))
            )

    async def forge(self, *, text: bytes = b"{}", headers: Mapping[str, str] | None = None) -> None:
        await self.bus.publish_durable(
            DurableMessage(
                "sublet.cluster.v1.event.eviction.created.default.n",
                text,
                msg_id=f"forged {text!r}",
                headers=headers or {},
            )
        )

    def buried(self) -> list[dict[str, Any]]:
        dead = BridgePosition(self.folder, "b").dead
        return [json.loads(line) for line in dead.read_text().splitlines()] if dead.exists() else []

    async def life(self, seconds: float) -> BaseException | None:
        """One life of the bridge; what it ended with, if it ended by itself."""
        lane_of = (lambda event: event.namespace) if self.by_namespace else None
        bridge = Bridge(
            self.bus, self.clock, self.receiver, BridgePosition(self.folder, "b"), self.said.append, lane_of
        )
        task = asyncio.create_task(bridge.run(event_filter()))
        await asyncio.sleep(seconds)
        if task.done():
            return task.exception()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return None


def test_events_come_in_order_and_those_that_arrive_later_too(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path)
        await world.add(1, 2)
        life = asyncio.create_task(world.life(10))
        await asyncio.sleep(1)
        await world.add(3)
        await life
        assert world.receiver.pods == ["pod-1", "pod-2", "pod-3"]

    virtual(main())


def test_trouble_is_tried_again_longer_and_longer_and_nothing_overtakes(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path, HttpAnswer(503), HttpAnswer(0), HttpAnswer(500))
        await world.add(1, 2)
        await world.life(60)
        assert world.receiver.pods == ["pod-1"] * 4 + ["pod-2"]
        moments = [at for at, _ in world.receiver.came]
        assert 0.5 <= moments[1] - moments[0] <= 1
        assert 2 <= moments[3] - moments[2] <= 4

    virtual(main())


def test_a_receiver_may_say_when(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path, HttpAnswer(429, 30.0))
        await world.add(1)
        await world.life(40)
        (first, _), (second, _) = world.receiver.came
        assert second - first == pytest.approx(30.0)

    virtual(main())


def test_a_refused_event_is_put_aside_whole_and_the_next_one_goes_on(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path, HttpAnswer(422))
        await world.add(1, 2)
        await world.life(5)
        assert world.receiver.pods == ["pod-1", "pod-2"]
        (line,) = BridgePosition(tmp_path, "b").dead.read_text().splitlines()
        kept = json.loads(line)
        assert (kept["sequence"], kept["status"], json.loads(kept["body"])["pod"]) == (1, 422, "pod-1")
        assert kept["headers"]["ce-id"] == event(1).event_id

    virtual(main())


def test_after_a_restart_it_goes_on_behind_the_last_one(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path, HttpAnswer(200), HttpAnswer(503))
        await world.add(1, 2, 3)
        await world.life(0.1)  # dies while it waits with the second one
        await world.life(5)
        assert world.receiver.pods == ["pod-1", "pod-2", "pod-2", "pod-3"]

    virtual(main())


def test_a_receiver_that_is_gone_for_good_ends_the_bridge_and_the_event_is_not_passed_over(
    virtual: Virtual, tmp_path: Path
) -> None:
    async def main() -> None:
        world = World(tmp_path, HttpAnswer(410))
        await world.add(1)
        assert isinstance(await world.life(5), WantsNoMore)
        assert BridgePosition(tmp_path, "b").sequence() == 0

    virtual(main())


def test_a_place_that_cannot_be_read_does_not_begin_anew(tmp_path: Path) -> None:
    place = BridgePosition(tmp_path, "b")
    place.done(7)
    assert place.sequence() == 7
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(Unavailable, match="deliver all events again"):
        place.sequence()


@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", "-a"])
def test_a_name_that_could_leave_the_folder_is_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(Refused, match="bridge name"):
        BridgePosition(tmp_path, name)


def test_what_is_no_event_is_put_aside_and_never_delivered(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path)
        await world.add(1)
        await world.forge(text=b"\xff")
        stolen = event(2).model_copy(update={"node": "other"})
        await world.forge(text=stolen.encode(), headers=event_headers(stolen))
        await world.add(3)
        await world.life(5)
        assert world.receiver.pods == ["pod-1", "pod-3"]
        assert [line["why"].split()[0] for line in world.buried()] == ["CloudEvent", "on"]
        assert sorted(said.split()[0] for said in world.said) == ["delivered", "delivered", "forged", "malformed"]
        assert BridgePosition(tmp_path, "b").sequence() == 4

    virtual(main())


def test_an_event_on_which_the_receiver_breaks_ends_nothing(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path, *[ValueError("\0 in a header")] * 5)
        await world.add(1, 2)
        assert await world.life(600) is None
        assert world.receiver.pods == ["pod-1"] * 5 + ["pod-2"]

    virtual(main())


@pytest.mark.parametrize(
    ("answer", "buried"),
    [
        (HttpAnswer(403, tries=5), True),
        (HttpAnswer(0), False),
        (HttpAnswer(422), True),
        (HttpAnswer(500), False),
        (HttpAnswer(429), False),
    ],
    ids=lambda value: str(getattr(value, "status", value)),
)
def test_a_namespace_that_is_refused_holds_up_no_other(
    virtual: Virtual, tmp_path: Path, answer: Any, buried: Any
) -> None:
    async def main() -> None:
        world = World(tmp_path, by_namespace=True)
        world.receiver.blocked["blocked"] = answer
        await world.add(1, 2, namespace="blocked")
        await world.add(3, 4)
        await world.life(10)
        moments = {pod: at for at, pod in reversed(world.receiver.came)}
        assert moments["pod-4"] - moments["pod-1"] < 10
        await world.life(60)
        assert bool(world.buried()) == buried
        assert BridgePosition(tmp_path, "b").sequence() == (4 if buried else 0)
        world.receiver.blocked.clear()
        await world.life(600)
        assert BridgePosition(tmp_path, "b").sequence() == 4

    virtual(main())


def test_a_lane_that_is_full_gives_events_up_and_holds_up_no_other(
    virtual: Virtual, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setattr(lanes, "LANE_ITEMS", 3)
        world = World(tmp_path, by_namespace=True)
        world.receiver.blocked["blocked"] = HttpAnswer(500)
        await world.add(*range(10), namespace="blocked")
        await world.add(11)
        await world.life(5)
        assert "pod-11" in world.receiver.pods
        assert len(world.buried()) in (6, 7)  # three wait, and one may be under way

    virtual(main())


def test_what_is_put_aside_has_a_bound_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_file, "DEAD_BYTES", 10_000)
    place = BridgePosition(tmp_path, "b")
    for sequence in range(1, 200):
        place.bury(Received("s", b"x" * 1000, {"h": "y" * 100_000}, sequence), status=0, why="forged")
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["b.dead.1.jsonl", "b.dead.jsonl"]
    assert sum(file.stat().st_size for file in files) < 2 * (10_000 + 40_000)
    assert json.loads(place.dead.read_text().splitlines()[-1])["sequence"] == 199


def test_a_disk_without_room_for_what_is_put_aside_ends_nothing(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path)
        (tmp_path / "b.dead.jsonl").mkdir()
        await world.add(1)
        await world.forge()
        await world.add(2)
        assert await world.life(5) is None
        assert world.receiver.pods == ["pod-1", "pod-2"]

    virtual(main())
