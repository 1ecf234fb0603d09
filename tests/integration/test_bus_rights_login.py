"""Who comes in at the hub, and how a leaf of the chart does: by a token that kubelet renews, over TLS where it can."""

import asyncio
import base64
import contextlib
import functools
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import nats
import pytest
import yaml
from bus_rights_rig import (
    AGENTS,
    HUB_LEAF_TLS,
    LEAF_TLS,
    PASSWORD,
    RENDERED,
    Hub,
    Leaf,
    at_the_hub,
    certificates,
    documents,
    new_certificates,
    reaches,
    running,
    started_hub,
)
from fixture_types import Until
from slow_machines import patience_s
from test_bus_rights import leaf

from services.central.core.logins.bus_login import AUDIENCE, NODE_NAME
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS
from shared.errors import Unavailable
from shared.ports import DurableMessage


async def _ready(hub: Hub) -> None:
    central = await hub.client(f"central:{PASSWORD}", "central/c")
    for spec in STREAMS:
        await central.ensure_stream(spec)
    await central.ensure_bucket(CONFIG_BUCKET)
    await central.put(CONFIG_BUCKET, "global", b"{}")


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    hub = started_hub(tmp_path / "hub")
    await _ready(hub)
    yield hub
    await hub.close()


async def test_a_leaf_that_lost_the_hub_comes_back_with_the_newest_token_and_never_left_its_node(
    tmp_path: Path, hub: Hub
) -> None:
    leaf = Leaf(tmp_path / "leaf", hub, "a")
    token = leaf.folder / "token"
    token.write_text(hub.reviews.issue("a", "first"))
    environment = {**os.environ, "LEAF_NAME": "a", "HUB": f"127.0.0.1:{hub.server.leaf_port}"}
    async with hub.central_answers():
        with subprocess.Popen(leaf.script(), env=environment) as process:
            try:
                agent = await at_the_hub(leaf)
                token.write_text(hub.reviews.issue("a", "second"))
                del hub.reviews.tokens["first"]
                hub.server.kill()
                hub.server.start()
                await agent.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0a-1", b"1", msg_id="1"))
                assert not leaf.server.said("Server Exiting")
                await agent.drain()
            finally:
                process.terminate()
            assert process.wait(patience_s(20)) == 0
    assert leaf.server.said("Server Exiting")


async def test_only_leaves_that_know_the_hubs_authority_come_in_and_show_it_a_token(
    tmp_path: Path, hub: Hub, until: Until
) -> None:
    knows, trusts_another, plain = (
        Leaf(tmp_path / "knows", hub, "a"),
        Leaf(tmp_path / "trusts-another", hub, "b"),
        Leaf(tmp_path / "plain", hub, "c", replaced={LEAF_TLS: ""}),
    )
    shutil.copy(new_certificates() / "ca.crt", trusts_another.folder / "tls/ca.crt")
    for one in (knows, trusts_another, plain):
        one.log_in_with(hub.reviews.issue(one.node, f"token-of-{one.node}"))
    asked = noted(hub)
    async with hub.central_answers():
        with running(knows.server, trusts_another.server, plain.server):
            agent = await at_the_hub(knows)
            await until(lambda: trusts_another.server.said("certificate signed by unknown authority"))
            await until(lambda: plain.server.said("connection closed"))
            await agent.drain()
    assert set(asked) == {"token-of-a"}


async def test_a_renewed_certificate_is_shown_soon_and_what_nodes_tell_is_stored_before_and_after(
    tmp_path: Path, hub: Hub, until: Until
) -> None:
    leaf = Leaf(tmp_path / "leaf", hub, "a")
    leaf.log_in_with(hub.reviews.issue("a"))
    hub.server.stop()
    async with hub_container(hub), hub.central_answers():
        with running(leaf.server):
            agent, shown = await at_the_hub(leaf), await shown_certificate(hub)
            await agent.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0a-1", b"1", msg_id="1"))
            renew_certificate(
                hub, tmp_path / "bin"
            )  # no reload: docs/facts/nats.md#a-reload-forgets-what-leaves-import
            await until(lambda: hub.server.log.read_text().count("Server is ready") == BEFORE_AND_AFTER)
            await agent.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0a-2", b"2", msg_id="2"))
            assert await shown_certificate(hub) != shown
            await agent.drain()


BEFORE_AND_AFTER = 3
"""Starts of the hub: the fixture's, the container's, and the one with the new certificate."""


@contextlib.asynccontextmanager
async def hub_container(hub: Hub) -> AsyncIterator[None]:
    """The hub by the script of its container."""
    environment = {**os.environ, **hub.server.env}
    with subprocess.Popen(hub.script(), env=environment) as process:
        try:
            yield
        finally:
            process.terminate()
    assert process.returncode == 0


async def shown_certificate(hub: Hub) -> str:
    """What the hub shows to leaves."""
    return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", hub.server.leaf_port))


def renew_certificate(hub: Hub, programs: Path) -> None:
    """The script's renewal, with the cluster's answers: the authority that made the hub's certificate."""
    programs.mkdir()
    kubectl = programs / "kubectl"
    kubectl.write_text(
        f'#!/bin/sh\ncase "$*" in *tls.crt*) f=ca.crt;; *) f=ca.key;; esac\nbase64 -w0 "{certificates()}/$f"\n'
    )
    kubectl.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    printed = subprocess.run(
        ["sh", RENDERED / "secrets.sh", "renew"], env=environment, check=True, capture_output=True, text=True
    ).stdout
    [secret] = [d for d in yaml.safe_load_all(printed) if d and d["metadata"]["name"] == "sublet-bus-tls"]
    for name in ("tls.crt", "tls.key"):
        (hub.server.folder / "tls" / name).write_bytes(base64.b64decode(secret["data"][name]))


def noted(hub: Hub) -> list[str]:
    """Tokens that somebody shows from now on."""
    asked: list[str] = []
    review = hub.reviews.review

    async def note(token: str, audience: str) -> Mapping[str, Any]:
        asked.append(token)
        return await review(token, audience)

    hub.reviews.review = note  # type: ignore[method-assign]  # what asks, asks this object
    return asked


async def test_a_leaf_shows_nothing_to_a_hub_without_a_certificate(tmp_path: Path, until: Until) -> None:
    hub = started_hub(tmp_path / "hub", {HUB_LEAF_TLS: ""})
    leaf = Leaf(tmp_path / "leaf", hub, "a")
    leaf.log_in_with(hub.reviews.issue("a"))
    asked = noted(hub)
    async with hub.central_answers():
        with running(leaf.server):
            await until(lambda: leaf.server.said("TLS handshake error") or leaf.server.said("connection closed"))
    await hub.close()
    assert asked == []


REFUSED: dict[str, dict[str, Any]] = {
    "not valid": {"authenticated": False},
    "for somebody else": {"audiences": ["https://kubernetes.default.svc"]},
    "audiences unknown": {"audiences": []},
    "another account's": {"user": {"username": "system:serviceaccount:default:x", "extra": {NODE_NAME: ["a"]}}},
    "bound to no node": {"user": {"username": AGENTS}},
    "bound to something odd": {"user": {"username": AGENTS, "extra": {NODE_NAME: ["*"]}}},
}


async def test_a_token_that_does_not_say_which_agent_it_is_opens_nothing(
    tmp_path: Path, hub: Hub, until: Until
) -> None:
    strangers = []
    for number, changes in enumerate(REFUSED.values()):
        stranger = Leaf(tmp_path / f"leaf-{number}", hub, "a")
        stranger.log_in_with(hub.reviews.issue("a", f"token-{number}", **changes))
        strangers.append(stranger.server)
    async with hub.central_answers():
        with running(*strangers):
            await until(lambda: all(stranger.said("Authorization Violation") for stranger in strangers))
            assert not hub.server.said("JetStream using domains")  # what it says of a leaf that is in


async def test_a_leaf_comes_in_with_no_password_of_the_hub_but_centrals(tmp_path: Path, hub: Hub, until: Until) -> None:
    async with hub.central_answers():
        for login in ("leaf:leaf", "bridge:bridge-word"):
            user, word = login.split(":")
            one = Leaf(tmp_path / user, hub, user)
            url = f"nats-leaf://{user}:{word}@127.0.0.1:{hub.server.leaf_port}"
            (one.folder / "nats-login/remote.conf").write_text(f'url: "{url}"\n')
            with running(one.server):
                await until(functools.partial(one.server.said, "Authorization Violation"))


async def test_who_has_a_password_comes_in_while_no_central_answers(tmp_path: Path) -> None:
    team = 'TEAM_x { users: [{ user: x, password: "team-word" }] }\n\n      SUBLET {'
    hub = started_hub(tmp_path / "hub", {"SUBLET {": team})
    try:
        for login in ("bridge:bridge-word", "x:team-word"):
            client = await nats.connect(hub.url(login), allow_reconnect=False)
            await client.flush()
            await client.close()
    finally:
        await hub.close()


async def test_a_token_is_no_login_for_a_client(hub: Hub) -> None:
    token = hub.reviews.issue("a")
    async with hub.central_answers():
        with pytest.raises(Unavailable) as refused:
            await connect(hub.url(f"leaf:{token}"), name="node/a", connect_timeout_s=0.5, clock=SystemClock())
    assert refused.value.reason == "login"


async def test_central_away_keeps_who_is_in_and_lets_others_wait(tmp_path: Path, hub: Hub, until: Until) -> None:
    a, b = leaf(tmp_path, hub, "a"), leaf(tmp_path, hub, "b")
    with running(a.server, b.server):
        async with hub.central_answers():
            agent = await at_the_hub(a)
        await agent.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0a-1", b"1", msg_id="1"))
        hub.server.kill()
        hub.server.start()
        async with hub.central_answers():  # both come back by themselves
            late = await at_the_hub(b)
            await reaches(agent, "a")
            await agent.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0a-1", b"2", msg_id="2"))
        await agent.drain()
        await late.drain()


async def test_the_api_server_away_is_a_refusal_and_no_right(tmp_path: Path, hub: Hub, until: Until) -> None:
    one = leaf(tmp_path, hub, "a")
    hub.reviews.away = True
    async with hub.central_answers():
        with running(one.server):
            await until(lambda: one.server.said("Authorization Violation"))
            hub.reviews.away = False
            agent = await at_the_hub(one)
            await agent.drain()


def test_the_audience_is_the_one_of_the_chart() -> None:
    (daemon,) = [d for d in documents() if d["kind"] == "DaemonSet"]
    text = json.dumps(daemon["spec"]["template"]["spec"]["volumes"])
    assert f'"audience": "{AUDIENCE}"' in text
