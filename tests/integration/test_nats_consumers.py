"""Teams' durables on the real server: made, changed, looked at; what they give up; and the commands over them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import nats
import pytest
from durable_counts import until_counted
from fixture_types import Until
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig
from present import present

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.accounts import AccountsFile
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import RefusedMessage
from shared.contracts.bus.subjects import DEAD_LETTERS_STREAM, EVENTS_STREAM, STREAMS, event_filter, event_subject
from shared.contracts.eviction import EvictionEvent
from shared.contracts.ids import intent_id
from shared.core.bus.durable import Durable, EventFilter, changes, wanted_durable
from shared.errors import Conflict, Refused, Unavailable
from shared.ports import DurableMessage
from sublet.consumers.dead import advisories, counts, dead_letters
from sublet.consumers.messages import buried, buried_table

EVENT = "sublet.cluster.v1.event.eviction.{}.{}.node-a"
WAIT_S = 10.0


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[NatsBus]:
    bus = await connect(server.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock())
    await make_streams(bus)
    yield bus
    await bus.drain()


@pytest.fixture
async def client(server: NatsServer) -> AsyncIterator[Client]:
    """A team, or an operator, with a client of NATS."""
    client = await nats.connect(server.url)
    yield client
    await client.close()


async def make_streams(bus: NatsBus) -> None:
    for spec in STREAMS:
        await bus.ensure_stream(spec)


async def tell(bus: NatsBus, *names: str, namespace: str = "team-a", phase: str = "created") -> None:
    for name in names:
        headers = {"ce-id": name, "ce-subject": f"{namespace}/{name}", "ce-time": "2026-03-09T14:07:31Z"}
        await bus.publish_durable(DurableMessage(EVENT.format(phase, namespace), b"{}", msg_id=name, headers=headers))


def event(pod: str, namespace: str = "team-a") -> EvictionEvent:
    return EvictionEvent(
        node="node-a", boot_id="0" * 8, seq=1, sent_at=datetime(2026, 3, 9, tzinfo=UTC), pod=pod, namespace=namespace,
        intent_id=intent_id("node-a", "ab", "p", 1), pod_uid="ab", qos="reclaimed_cores", plugin="p", scope="memory",
        phase="created",
    )  # fmt: skip


async def store(bus: NatsBus, one: EvictionEvent) -> None:
    await bus.publish_durable(
        DurableMessage(event_subject(one), one.encode(), msg_id=one.event_id, headers=event_headers(one))
    )


async def pull(client: Client, name: str) -> Msg:
    durable = await client.jetstream().pull_subscribe("", durable=name, stream=EVENTS_STREAM)
    [message] = await durable.fetch(1, timeout=WAIT_S)
    return message


async def give_up(client: Client, name: str) -> None:
    """Have it refuse what is at its head; the server says so as soon as it looks again."""
    message = await pull(client, name)
    await message.nak()


WANTED = (
    wanted_durable("team-a", EventFilter(namespaces=["team-a"])),
    wanted_durable("team-a"),
    wanted_durable("team-a", EventFilter(namespaces=["a", "b"], phases=["created", "failed"], nodes=["n.example"])),
    wanted_durable("team-a", start="new", ack_wait_s=0.5),
    wanted_durable("team-a", start="2026-03-09T15:00:00.123456+01:00", max_deliver=7),
    wanted_durable("A_b-9", max_deliver=1),
)


@pytest.mark.parametrize("wanted", WANTED, ids=range(len(WANTED)))
async def test_what_is_made_is_what_was_wanted(bus: NatsBus, wanted: Durable) -> None:
    await bus.durables.put(wanted)
    state = present(await bus.durables.named(wanted.name))
    assert state.durable == wanted
    assert changes(state.durable, wanted) == ()
    await bus.durables.put(wanted)
    assert [one.durable for one in await bus.durables.all()] == [wanted]


async def test_a_durable_that_has_drifted_is_brought_back_and_keeps_its_place(bus: NatsBus, client: Client) -> None:
    wanted = wanted_durable("team-a", EventFilter(namespaces=["team-a"]))
    await bus.durables.put(wanted)
    await tell(bus, "1", "2", "3")
    await (await pull(client, "team-a")).ack_sync(timeout=WAIT_S)
    js = client.jetstream()
    config = (await js.consumer_info(EVENTS_STREAM, "team-a")).config
    await js.add_consumer(EVENTS_STREAM, config.evolve(ack_wait=3.0, max_ack_pending=256, description="theirs"))

    drifted = present(await bus.durables.named("team-a")).durable
    assert {change.field for change in changes(drifted, wanted)} == {"ack_wait_s", "max_ack_pending"}
    await bus.durables.put(wanted)
    assert (await until_counted(bus, "team-a", pending=2)).durable == wanted
    assert (await js.consumer_info(EVENTS_STREAM, "team-a")).config.description == "theirs"


async def test_every_setting_that_the_server_lets_change_is_changed(bus: NatsBus) -> None:
    await bus.durables.put(wanted_durable("x", EventFilter(namespaces=["a"])))
    for wanted in (
        wanted_durable("x", EventFilter(namespaces=["a", "b"]), max_deliver=3),
        wanted_durable("x", EventFilter(phases=["failed"]), ack_wait_s=7.0),
        wanted_durable("x"),
    ):
        await bus.durables.put(wanted)
        assert present(await bus.durables.named("x")).durable == wanted


async def test_another_kind_of_durable_is_left_as_it_is(bus: NatsBus, client: Client) -> None:
    theirs = ConsumerConfig(durable_name="x", deliver_subject="theirs", ack_policy=AckPolicy.NONE)
    await client.jetstream().add_consumer(EVENTS_STREAM, theirs)
    with pytest.raises(Conflict, match="ack_policy is none, wanted explicit"):
        changes(present(await bus.durables.named("x")).durable, wanted_durable("x"))
    assert present(await bus.durables.named("x")).durable.kind == "push"


async def test_what_the_server_refuses_is_said(bus: NatsBus) -> None:
    with pytest.raises(Refused, match="consumer x: the server says"):
        await bus.durables.put(replace(wanted_durable("x"), filters=(event_filter(), event_filter(phase="created"))))


async def test_how_far_behind_a_durable_is(bus: NatsBus, client: Client) -> None:
    await bus.durables.put(wanted_durable("team-a", EventFilter(namespaces=["team-a"]), ack_wait_s=0.1))
    await tell(bus, "other", namespace="team-b")
    await tell(bus, "1", "2")
    kept = present(await bus.durables.kept(2))
    assert (await until_counted(bus, "team-a", pending=2)).oldest == kept.stored_at
    await pull(client, "team-a")
    again = await pull(client, "team-a")  # nobody acknowledged it within its time
    assert again.metadata.num_delivered == 2
    state = await until_counted(bus, "team-a", pending=1, unacknowledged=1)
    assert (state.redelivered, state.oldest) == (1, kept.stored_at)


async def test_without_a_stream_it_is_said_who_makes_it(server: NatsServer) -> None:
    bus = await connect(server.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock())
    for asking in (bus.durables.all(), bus.durables.named("x"), bus.durables.put(wanted_durable("x"))):
        with pytest.raises(Unavailable, match="no stream SUBLET_EVENTS on this server: central makes it"):
            await asking
    await bus.drain()


async def test_a_stream_deleted_under_us_takes_its_durables_and_both_are_made_anew(
    bus: NatsBus, client: Client
) -> None:
    wanted = wanted_durable("team-a", EventFilter(namespaces=["team-a"]))
    await bus.durables.put(wanted)
    await tell(bus, "1")
    await client.jetstream().delete_stream(EVENTS_STREAM)
    await make_streams(bus)
    assert await bus.durables.named("team-a") is None
    assert not await bus.durables.remove("team-a")
    await bus.durables.put(wanted)
    await tell(bus, "2")
    assert present((await pull(client, "team-a")).headers)["ce-id"] == "2"


async def stored_advisories(bus: NatsBus, client: Client, name: str, want: int) -> None:
    """Wait until the stream has them; the server looks when it is asked for more."""
    durable = await client.jetstream().pull_subscribe("", durable=name, stream=EVENTS_STREAM)
    async with asyncio.timeout(WAIT_S):
        while len(await advisories(bus, name)) < want:
            await client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{EVENTS_STREAM}.{name}", b'{"batch":1,"no_wait":true}', reply="nobody"
            )
            await asyncio.sleep(0.01)
    await durable.unsubscribe()


async def test_what_is_given_up_is_kept_with_its_event_over_a_restart(
    bus: NatsBus, client: Client, server: NatsServer, until: Until
) -> None:
    await bus.durables.put(wanted_durable("team-a", EventFilter(namespaces=["team-a"]), max_deliver=2))
    await bus.durables.put(wanted_durable("team-b", EventFilter(namespaces=["team-b"]), max_deliver=1))
    await tell(bus, "no-event", namespace="team-b")
    await store(bus, worse := event("worse"))
    await give_up(client, "team-b")
    await give_up(client, "team-a")
    await give_up(client, "team-a")
    await stored_advisories(bus, client, "team-a", 1)
    await stored_advisories(bus, client, "team-b", 1)
    server.kill()
    await until(lambda: not bus.connected)
    server.start()
    await until(lambda: bus.connected)
    assert await counts(bus) == {"team-a": 1, "team-b": 1}
    [letter] = await dead_letters(bus, bus.durables, "team-a")
    assert (letter.advisory.sequence, letter.advisory.deliveries) == (2, 2)
    assert letter.event == worse
    [letter] = await dead_letters(bus, bus.durables, "team-b")
    assert isinstance(letter.event, RefusedMessage)
    assert "CloudEvent without" in buried_table([buried(letter)])
    [stream] = [one for one in STREAMS if one.name == DEAD_LETTERS_STREAM]
    await bus.ensure_stream(stream)
    assert telemetry.STREAM_MESSAGES.labels(DEAD_LETTERS_STREAM)._value.get() == 2


async def test_a_letter_whose_event_is_gone_says_so_and_nonsense_is_passed_over(bus: NatsBus, client: Client) -> None:
    await bus.durables.put(wanted_durable("team-a", max_deliver=1))
    await tell(bus, "1")
    await give_up(client, "team-a")
    await stored_advisories(bus, client, "team-a", 1)
    await client.jetstream().delete_stream(EVENTS_STREAM)
    [letter] = await dead_letters(bus, bus.durables)
    assert letter.event is None
    await make_streams(bus)
    await tell(bus, "2")  # has the sequence that "1" had
    [letter] = await dead_letters(bus, bus.durables)
    assert (letter.advisory.sequence, letter.event) == (1, None)
    for nonsense in (b"\xff", b"{}", b"[]", b'{"timestamp":"x","consumer":"c","stream_seq":1,"deliveries":1}'):
        subject = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.SUBLET_EVENTS.team-a"
        await bus.publish_durable(DurableMessage(subject, nonsense, msg_id=repr(nonsense)))
    assert len(await advisories(bus)) == 1


def command(url: str, folder: Path, *words: str) -> tuple[int, str, str]:
    """Code, standard output and standard error of `sublet consumers …`."""
    own = {"SUBLET_NATS_URL": url, "SUBLET_STATE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "sublet", "consumers", *words],
        env=os.environ | own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


async def test_a_dry_run_of_each_command_says_what_would_be_and_leaves_the_server_as_it_is(
    bus: NatsBus, server: NatsServer, tmp_path: Path
) -> None:
    async def sublet(*words: str) -> tuple[int, str]:
        code, out, _ = await asyncio.to_thread(command, server.url, tmp_path, *words)
        return code, out

    async def there() -> list[tuple[str, int, tuple[str, ...]]]:
        return [(one.durable.name, one.pending, one.durable.filters) for one in await bus.durables.all()]

    await tell(bus, "1", "2")
    code, out = await sublet("add", "team-a", "--dry-run")
    assert (code, "created (dry run)" in out, await there()) == (0, True, [])
    await bus.durables.put(wanted_durable("team-a", EventFilter(namespaces=["team-a"])))
    before = await there()
    code, out = await sublet("add", "team-a", "--namespace", "team-b", "--dry-run")
    assert (code, "updated (dry run)" in out, await there()) == (0, True, before)
    code, out = await sublet("rotate", "team-a", "--dry-run")
    assert (code, "would be a new one" in out) == (0, True)
    code, out = await sublet("remove", "team-a", "--dry-run")
    assert (code, out) == (0, "team-a: durable would be removed; 2 events wait for it (dry run)\n")
    code, _ = await sublet("remove", "team-b", "--dry-run")
    assert code != 0
    assert await there() == before
    assert [path.name for path in tmp_path.iterdir()] == ["nats"], "the server's own, and nothing else"


async def test_a_dry_run_of_a_bridge_counts_what_waits_and_delivers_nothing(
    bus: NatsBus, server: NatsServer, tmp_path: Path
) -> None:
    await tell(bus, "1", "2", "3")
    place = tmp_path / "bridges/webhook.json"
    words = ("bridge", "--to", "http://127.0.0.1:9/hook", "--dry-run")
    own = {"SUBLET_NATS_URL": server.url, "SUBLET_STATE_DIR": str(tmp_path)}

    async def said() -> str:
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-m", "sublet", *words], env=os.environ | own, capture_output=True,
            text=True, check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.stdout

    to = "http://127.0.0.1:9/hook, then new ones (dry run)\n"
    assert await said() == f"3 events after sequence 0 would be delivered to {to}"
    assert not place.exists()
    place.parent.mkdir()
    place.write_text('{"sequence": 2}')
    assert await said() == f"1 events after sequence 2 would be delivered to {to}"
    assert place.read_text() == '{"sequence": 2}'


async def test_a_team_from_its_first_day_to_its_last(bus: NatsBus, server: NatsServer, tmp_path: Path) -> None:
    async def sublet(*words: str) -> tuple[int, str, str]:
        return await asyncio.to_thread(command, server.url, tmp_path, *words)

    await tell(bus, "1", "2")
    secret = tmp_path / "secret"
    secret.touch(mode=0o644)
    add = ("add", "team-a", "--namespace", "team-a", "-o", "json")
    code, out, _ = await sublet(*add, "--password-file", str(secret))
    made = json.loads(out)
    assert (code, made["durable"], made["filters"]) == (0, "created", [event_filter(namespace="team-a")])
    assert secret.stat().st_mode & 0o777 == 0o600
    password = secret.read_text().strip()
    assert password not in out

    code, out, _ = await sublet(*add)
    assert (code, json.loads(out)["durable"], json.loads(out)["password"]) == (0, "unchanged", None)
    code, out, _ = await sublet(*add, "--max-deliver", "3")
    assert [(c["field"], c["now"], c["wanted"]) for c in json.loads(out)["changed"]] == [("max_deliver", "none", "3")]
    code, out, said = await sublet(*add, "--from", "new")
    assert (code, out) == (1, "")
    assert "start is all, wanted new" in said
    assert "sublet consumers remove team-a" in said
    code, _, said = await sublet("add", "team-c", "--password-file", str(tmp_path / "nowhere" / "secret"))
    assert code == 2
    assert "nowhere/secret: No such file" in said
    assert list(AccountsFile(tmp_path / "nats" / "accounts.json").logins()) == ["team-a"]
    code, _, said = await sublet("remove", "team-c", "--yes")
    assert (code != 0, "no consumer 'team-c' here" in said) == (True, True), "nothing was left behind"
    code, _, said = await sublet("add", "team a")
    assert code == 2
    assert "want 1 to 64 characters" in said

    team = await nats.connect(server.address.replace("nats://", f"nats://team-a:{password}@"))
    assert present((await pull(team, "team-a")).headers)["ce-id"] == "1"
    await team.close()
    await until_counted(bus, "team-a", pending=1, unacknowledged=1)
    code, out, _ = await sublet("list", "-o", "json")
    [listed] = json.loads(out)
    assert (code, listed["login"], listed["pending"], listed["unacknowledged"]) == (0, True, 1, 1)
    assert datetime.fromisoformat(listed["oldest"]) < datetime.now(UTC)

    code, out, _ = await sublet("rotate", "team-a")
    assert code == 0
    assert password not in out
    assert "nats://team-a:" in out
    code, out, said = await sublet("remove", "team-a")
    assert (code, out) == (2, "")
    assert "--yes" in said
    code, out, _ = await sublet("remove", "team-a", "--yes")
    assert (code, out) == (0, "team-a: durable and login removed\n")
    code, _, said = await sublet("rotate", "team-a")
    assert code == 2
    assert "sublet consumers add team-a" in said


async def test_for_a_server_that_is_not_ours_it_writes_down_what_its_operator_adds(
    bus: NatsBus, server: NatsServer, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    code, out, _ = await asyncio.to_thread(command, server.url, elsewhere, "add", "team-a", "-o", "json")
    made = json.loads(out)
    assert code == 0
    assert "TEAM_team-a" in made["for_operator"]
    assert made["password"]
    assert made["password"] not in made["for_operator"]
    code, out, _ = await asyncio.to_thread(command, server.url, elsewhere, "add", "team-a", "-o", "json")
    assert (json.loads(out)["durable"], json.loads(out)["password"]) == ("unchanged", None)


async def test_dead_letters_are_listed_for_people(
    bus: NatsBus, client: Client, server: NatsServer, tmp_path: Path
) -> None:
    await bus.durables.put(wanted_durable("team-a", max_deliver=1))
    await store(bus, event("bad"))
    await give_up(client, "team-a")
    await stored_advisories(bus, client, "team-a", 1)
    code, out, _ = await asyncio.to_thread(command, server.url, tmp_path, "dead-letters", "team-a")
    assert code == 0
    assert out.splitlines()[1].split()[:3] == ["team-a", "1", "1"]
    assert "team-a/bad" in out
    assert "sublet events --since-seq" in out
    code, out, _ = await asyncio.to_thread(command, server.url, tmp_path, "list")
    assert out.splitlines()[1].split()[5] == "1"
    code, out, _ = await asyncio.to_thread(command, server.url, tmp_path, "dead-letters", "team-b")
    assert out == "no dead letters\n"
