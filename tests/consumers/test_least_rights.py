"""A login with the rights that docs/subscribing.md names, and no other, is enough for every example."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
import pytest
from consumer_rig import EXAMPLES, Consumer, Language, built
from events_told import Teller, evictions, ids_by_pod, telling
from nats.js.api import AckPolicy, ConsumerConfig
from slow_machines import patience_s

from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
from shared.contracts.eviction import EvictionEvent

pytestmark = [pytest.mark.consumers, pytest.mark.timeout(300)]

PAGE = (EXAMPLES.parents[1] / "docs" / "subscribing.md").read_text()
TEAM = "team-a"
PATIENCE_S = patience_s(60.0)


def rights(language: Language, *, create: bool) -> dict[str, list[str]]:
    """The page's table, and the sentence behind it, for one durable."""
    found = dict(re.findall(r"^\| (publish|subscribe) \| (.*) \|$", PAGE, re.MULTILINE))
    subjects = {what: re.findall(r"`([^`]+)`", cells) for what, cells in found.items()}
    if create:
        subjects["publish"] += re.findall(r"`(\$JS\.API\.CONSUMER\.CREATE[^`]+)`", PAGE)
    filled = {"<durable>": language.durable, "<filter>": event_filter(namespace=TEAM)}
    for word, value in filled.items():
        subjects = {what: [subject.replace(word, value) for subject in all_] for what, all_ in subjects.items()}
    return subjects


class GuardedServer(NatsServer):
    """A server with an operator, who may do all, and a team, who may do what is said."""

    def __init__(self, store_dir: Path, team: dict[str, list[str]]) -> None:
        super().__init__(store_dir=store_dir)
        self._team = team

    def _access(self) -> str:
        users = [
            {"user": "operator", "password": "o-secret"},
            {"user": "team", "password": "t-secret", "permissions": self._team},
        ]
        return f"authorization: {json.dumps({'users': users})}"

    def url_of(self, user: str) -> str:
        return self.address.replace("nats://", f"nats://{user}:{user[0]}-secret@")


@pytest.fixture(params=[True, False], ids=["creates", "pulls"])
def create(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def guarded(language: Language, create: bool, tmp_path: Path) -> Iterator[GuardedServer]:
    server = GuardedServer(tmp_path / "nats", rights(language, create=create))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def operator(guarded: GuardedServer) -> AsyncIterator[Teller]:
    """Who may publish."""
    async with telling(guarded.url_of("operator")) as teller:
        yield teller


async def test_the_rights_on_the_page_are_enough(
    language: Language, create: bool, guarded: GuardedServer, operator: Teller, tmp_path: Path
) -> None:
    told = evictions(TEAM, 1, pods=3)
    await operator.tell(told)
    if not create:
        await make_durable(guarded.url_of("operator"), language.durable)
    out = tmp_path / "events.jsonl"
    with Consumer(language, built(language), url=guarded.url_of("team"), out=out, namespace=TEAM) as consumer:
        consumer.start()
        deadline = time.monotonic() + PATIENCE_S
        while len(consumer.lines()) < len(told):
            assert consumer.running, consumer.said()
            assert time.monotonic() < deadline, consumer.said()
            await asyncio.sleep(0.01)
        assert consumer.stop() == 0
        assert ids_by_pod([EvictionEvent.model_validate(line["data"]) for line in consumer.lines()]) == ids_by_pod(told)


async def make_durable(url: str, name: str) -> None:
    """As an operator makes one for a team."""
    client = await nats.connect(url)
    config = ConsumerConfig(
        durable_name=name,
        filter_subject=event_filter(namespace=TEAM),
        ack_policy=AckPolicy.EXPLICIT,
        max_ack_pending=1,
    )
    await client.jetstream().add_consumer(EVENTS_STREAM, config)
    await client.close()
