"""A watch of some keys on a real server: over restarts, deletions, a bucket made anew, servers that lag behind."""

from collections.abc import AsyncIterator

import nats
import pytest
from fixture_types import Until
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.config import _Newest
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS
from shared.ports import Entry


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[NatsBus]:
    bus = await connect(server.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock())
    await bus.ensure_bucket(CONFIG_BUCKET)
    yield bus
    await bus.drain()


async def test_it_goes_on_over_restarts(bus: NatsBus, server: NatsServer, until: Until) -> None:
    got: list[Entry] = []
    await bus.watch(CONFIG_BUCKET, got.append, keys=("global",))
    for life in range(3):
        revision = await bus.put(CONFIG_BUCKET, "global", b"%d" % life)
        newest = Entry("global", b"%d" % life, revision)

        def came(newest: Entry = newest) -> bool:
            return got[-1:] == [newest]

        await until(came)
        server.kill()
        await until(lambda: not bus.connected)
        server.start()
        await until(lambda: bus.connected)
    assert len(got) == 3


async def test_a_change_while_it_was_away_is_found(bus: NatsBus, server: NatsServer, until: Until) -> None:
    got: list[Entry] = []
    await bus.watch(CONFIG_BUCKET, got.append, keys=("global",))
    await bus.put(CONFIG_BUCKET, "global", b"1")
    await until(lambda: len(got) == 1)
    server.kill()
    await until(lambda: not bus.connected)
    server.start()
    other = await connect(server.url, name="test/other", connect_timeout_s=5, clock=SystemClock())
    await other.put(CONFIG_BUCKET, "global", b"2")
    await until(lambda: got[-1] == Entry("global", b"2", 2))
    await other.drain()


async def test_a_deleted_key_is_told(bus: NatsBus, server: NatsServer, until: Until) -> None:
    got: list[Entry] = []
    await bus.put(CONFIG_BUCKET, "global", b"1")
    await bus.watch(CONFIG_BUCKET, got.append, keys=("global", "node.a"))
    await until(lambda: got)
    client = await nats.connect(server.url)
    await (await client.jetstream().key_value(CONFIG_BUCKET)).delete("global")
    await until(lambda: got[-1] == Entry("global", None, 2))
    await client.close()


async def test_a_bucket_that_was_made_anew_begins_again(bus: NatsBus, server: NatsServer, until: Until) -> None:
    got: list[Entry] = []
    await bus.watch(CONFIG_BUCKET, got.append, keys=("global",))
    for value in (b"1", b"2", b"3"):
        await bus.put(CONFIG_BUCKET, "global", value)
    await until(lambda: got and got[-1] == Entry("global", b"3", 3))
    client = await nats.connect(server.url)
    await client.jetstream().delete_key_value(CONFIG_BUCKET)
    await bus.ensure_bucket(CONFIG_BUCKET)
    await bus.put(CONFIG_BUCKET, "global", b"new")
    await until(lambda: got[-1] == Entry("global", b"new", 1))
    await client.close()


async def test_a_bucket_of_an_older_version_is_made_readable(server: NatsServer, until: Until) -> None:
    client = await nats.connect(server.url)
    await client.jetstream().create_key_value(bucket=CONFIG_BUCKET, history=10)
    bus = await connect(server.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock())
    got: list[Entry] = []
    await bus.watch(CONFIG_BUCKET, got.append, keys=("global",))
    await bus.put(CONFIG_BUCKET, "global", b"1")
    await bus.ensure_bucket(CONFIG_BUCKET)
    await until(lambda: got == [Entry("global", b"1", 1)])
    config = (await client.jetstream().stream_info(f"KV_{CONFIG_BUCKET}")).config
    assert (config.allow_direct, config.max_msgs_per_subject, config.num_replicas) == (True, 10, 1)
    await client.close()
    await bus.drain()


async def test_more_replicas_than_servers_are_refused_and_none_leaves_them_alone(
    bus: NatsBus, server: NatsServer
) -> None:
    with pytest.raises(Exception, match="replicas"):
        await bus.ensure_bucket(CONFIG_BUCKET, replicas=3)
    await bus.ensure_bucket(CONFIG_BUCKET)
    for spec in STREAMS:
        await bus.ensure_stream(spec)


@given(st.lists(st.integers(1, 9), min_size=1))
def test_a_server_that_lags_behind_once_is_not_believed(revisions: list[int]) -> None:
    """Between rising answers, each of an older revision is taken for what it is: not news."""
    newest, highest = _Newest(), 0
    for revision in revisions:
        if revision > highest:
            assert newest.advance(revision)
            highest = revision
        assert not newest.advance(highest)
        if revision < highest:
            assert not newest.advance(revision)
            assert newest.behind
            assert not newest.advance(highest)
        assert not newest.behind


def test_an_older_revision_that_is_said_twice_is_the_new_state() -> None:
    newest = _Newest()
    assert [newest.advance(revision) for revision in (7, 2, 2, 2, 3)] == [True, False, True, False, True]
