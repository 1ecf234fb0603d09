"""Eviction events as Events of Kubernetes."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from present import present

from shared import ports
from shared.adapters.kube.client import Kube, KubeError
from shared.contracts.eviction import EvictionEvent
from shared.contracts.ids import intent_id
from shared.errors import Unavailable
from sublet.bridge.kube_events import event_document, posting_events
from sublet.bridge.request import verdict

NOW = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
TEXT = (
    "Successfully create eviction; reason: met threshold in scope: memory from plugin: memory-pressure-eviction-plugin"
)


def event(**changed: Any) -> EvictionEvent:
    return EvictionEvent(**{
        "node": "n1", "boot_id": "0" * 8, "seq": 1, "sent_at": NOW, "pod": "batch-0", "namespace": "team-a",
        "intent_id": intent_id("n1", "aa", "p", 1), "pod_uid": "aa", "qos": "reclaimed_cores", "plugin": "p",
        "scope": "memory", "phase": "created", "attempt": 1, "message": TEXT,
    } | changed)  # fmt: skip


class Clock:
    def wall(self) -> datetime:
        return NOW + timedelta(minutes=1)

    def monotonic(self) -> float:
        return 0.0


class Server:
    """Holds Events by name, or answers as told."""

    def __init__(self, error: Exception | None = None):
        self.error, self.closed = error, False
        self.events: dict[str, Any] = {}

    async def create(self, path: str, body: dict[str, Any], *, manager: str) -> dict[str, Any]:
        assert manager == "sublet-events"
        if self.error is not None:
            raise self.error
        if body["metadata"]["name"] in self.events:
            raise KubeError(path, 409, {"reason": "AlreadyExists"})
        self.events[body["metadata"]["name"]] = body
        return body

    async def close(self) -> None:
        self.closed = True


async def delivered(server: Server, *events: EvictionEvent) -> list[str]:
    async with posting_events(cast("Kube", server), cast("ports.Clock", Clock())) as post:
        answers = [await post(one, {}) for one in events]
    assert server.closed
    return [verdict(answer) for answer in answers]


def test_an_event_says_what_the_tutorial_prints() -> None:
    document = present(event_document(event()))
    assert (document["type"], document["reason"], document["note"]) == ("Normal", "EvictCreated", TEXT)
    assert document["regarding"] == {
        "apiVersion": "v1", "kind": "Pod", "namespace": "team-a", "name": "batch-0", "uid": "aa",
    }  # fmt: skip
    assert document["eventTime"] == "2026-01-01T12:00:00.250000Z"
    assert re.fullmatch(r"batch-0\.[0-9a-f]{16}", document["metadata"]["name"])


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        ("intended", None),
        ("cancelled", None),
        ("created", ("Normal", "EvictCreated")),
        ("succeeded", ("Normal", "EvictSucceeded")),
        ("failed", ("Warning", "EvictFailed")),
        ("refused", ("Warning", "EvictRefused")),
    ],
)
def test_the_steps_that_are_told(phase: str, told: tuple[str, str] | None) -> None:
    document = event_document(event(phase=phase))
    assert (document and (document["type"], document["reason"])) == told


def test_a_rehearsal_is_not_told() -> None:
    assert event_document(event(mode="dry-run")) is None


def test_the_longest_name_of_a_pod_leaves_room_for_the_mark() -> None:
    assert len(present(event_document(event(pod="p" * 253)))["metadata"]["name"]) == 253


async def test_an_event_delivered_twice_is_one_event() -> None:
    server = Server()
    assert await delivered(server, event(), event(), event(phase="succeeded")) == ["done", "done", "done"]
    assert sorted(body["reason"] for body in server.events.values()) == ["EvictCreated", "EvictSucceeded"]


async def test_what_the_server_would_have_forgotten_is_passed_over() -> None:
    server = Server()
    assert await delivered(server, event(sent_at=NOW - timedelta(hours=2))) == ["done"]
    assert not server.events


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (Unavailable("no answer"), "again"),
        (KubeError("POST", 500, {}), "again"),
        (KubeError("POST", 429, {}), "again"),
        (KubeError("POST", 401, {}), "again"),
        (KubeError("POST", 403, {"reason": "Forbidden"}), "again"),
        (KubeError("POST", 403, {"details": {"causes": [{"reason": "NamespaceTerminating"}]}}), "done"),
        (KubeError("POST", 404, {}), "done"),
        (KubeError("POST", 422, {}), "dead"),
    ],
)
async def test_what_an_answer_of_the_api_server_means(error: KubeError | Unavailable, becomes: str) -> None:
    assert await delivered(Server(error), event()) == [becomes]


async def test_a_namespace_that_forbids_events_is_tried_five_times() -> None:
    async with posting_events(
        cast("Kube", Server(KubeError("POST", 403, {"reason": "Forbidden"}))), cast("ports.Clock", Clock())
    ) as post:
        answer = await post(event(), {})
    assert [verdict(answer, tries) for tries in range(1, 6)] == ["again"] * 4 + ["dead"]
    assert verdict(answer, 1, known=True) == "dead"


async def test_one_nodes_flood_does_not_fill_the_api_server() -> None:
    server = Server()
    flood = [event(attempt=number) for number in range(1, 1100)]
    assert (await delivered(server, *flood)).count("dead") == 99
    assert await delivered(server, event(node="n2")) == ["done"]
    assert len(server.events) == 1001


def test_an_event_in_another_nodes_words_is_another_event() -> None:
    assert present(event_document(event()))["metadata"] != present(event_document(event(node="n2")))["metadata"]


def test_no_control_character_gets_into_a_note() -> None:
    assert present(event_document(event(message="\x1b]0;owned\x07")))["note"] == r"\x1b]0;owned\x07"
