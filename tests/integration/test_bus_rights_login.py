"""Who comes in at the hub, and how a leaf of the chart does: by a token that kubelet renews, over TLS where it can."""

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import pytest
from bus_rights_rig import AGENTS, PASSWORD, RENDERED, Hub, Leaf, documents, running, started_hub
from test_bus_rights import at_the_hub, leaf, reaches

from services.central.core.bus_login import AUDIENCE, NODE_NAME
from shared.adapters.clock import SystemClock
from shared.adapters.nats_bus import connect
from shared.contracts.subjects import CONFIG_BUCKET, STREAMS
from shared.errors import Unavailable

TEMPLATE = (RENDERED / "chart/templates/bus/config.yaml").read_text()


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


async def test_a_leaf_that_lost_the_hub_comes_back_with_the_newest_token_and_never_left_its_node(tmp_path, hub):
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
                await agent.publish_durable("sublet.cluster.v1.intent.a.0a-1", b"1", msg_id="1")
                assert not leaf.server.said("Server Exiting")
                await agent.drain()
            finally:
                process.terminate()
            assert process.wait(20) == 0
    assert leaf.server.said("Server Exiting")


def block(number: int) -> str:
    """What the template adds, where a certificate is named, at the n-th place."""
    return TEMPLATE.split("{{- if .Values.bus.leafTlsSecret }}\n")[number].split("{{- end }}")[0].strip()


HUB_PLACE, LEAF_PLACE = "isolate_leafnode_interest: true", 'deny_imports: ["sublet.node.>"]'
HUB_TLS, LEAF_TLS = {HUB_PLACE: f"{HUB_PLACE}\n{block(1)}"}, {LEAF_PLACE: f"{LEAF_PLACE}\n{block(2)}"}


def certificate(folder: Path) -> Path:
    """A certificate for this machine that signs itself, as tls.crt, tls.key and ca.crt."""
    folder.mkdir(parents=True)
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=hub"
    names = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(folder / "tls.key"),
        "-out",
        str(folder / "tls.crt"),
    ]
    subprocess.run(["openssl", *words.split(), *names], check=True, capture_output=True)
    shutil.copy(folder / "tls.crt", folder / "ca.crt")
    return folder / "ca.crt"


NO_OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")


@NO_OPENSSL
async def test_with_a_certificate_only_leaves_that_know_its_authority_come_in(tmp_path, until):
    authority = certificate(tmp_path / "hub/tls")
    hub = started_hub(tmp_path / "hub", HUB_TLS)
    await _ready(hub)
    knows, trusts_another, plain = (
        Leaf(tmp_path / "knows", hub, "a", replaced=LEAF_TLS),
        Leaf(tmp_path / "trusts-another", hub, "b", replaced=LEAF_TLS),
        Leaf(tmp_path / "plain", hub, "c"),
    )
    (knows.folder / "tls").mkdir()
    shutil.copy(authority, knows.folder / "tls/ca.crt")
    certificate(trusts_another.folder / "tls")
    for one in (knows, trusts_another, plain):
        one.log_in_with(hub.reviews.issue(one.node))
    async with hub.central_answers():
        with running(knows.server, trusts_another.server, plain.server):
            agent = await at_the_hub(knows)
            await until(lambda: trusts_another.server.said("certificate signed by unknown authority"))
            await until(lambda: plain.server.said("certificate signed by unknown authority"))
            await agent.drain()
    await hub.close()


@NO_OPENSSL
async def test_a_leaf_with_an_authority_shows_nothing_to_a_hub_without_a_certificate(tmp_path, hub, until):
    leaf = Leaf(tmp_path / "leaf", hub, "a", replaced=LEAF_TLS)
    certificate(leaf.folder / "tls")
    asked: list[str] = []
    issue = hub.reviews.issue("a")
    leaf.log_in_with(issue)
    review = hub.reviews.review

    async def note(token: str, audience: str) -> object:
        asked.append(token)
        return await review(token, audience)

    hub.reviews.review = note
    async with hub.central_answers():
        with running(leaf.server):
            await until(lambda: leaf.server.said("Leafnode connection closed"))
    assert asked == []


REFUSED = {
    "not valid": {"authenticated": False},
    "for somebody else": {"audiences": ["https://kubernetes.default.svc"]},
    "audiences unknown": {"audiences": []},
    "another account's": {"user": {"username": "system:serviceaccount:default:x", "extra": {NODE_NAME: ["a"]}}},
    "bound to no node": {"user": {"username": AGENTS}},
    "bound to something odd": {"user": {"username": AGENTS, "extra": {NODE_NAME: ["*"]}}},
}


async def test_a_token_that_does_not_say_which_agent_it_is_opens_nothing(tmp_path, hub, until):
    strangers = []
    for number, changes in enumerate(REFUSED.values()):
        stranger = Leaf(tmp_path / f"leaf-{number}", hub, "a")
        stranger.log_in_with(hub.reviews.issue("a", f"token-{number}", **changes))
        strangers.append(stranger.server)
    async with hub.central_answers():
        with running(*strangers):
            await until(lambda: all(stranger.said("Authorization Violation") for stranger in strangers))
            assert not hub.server.said("JetStream using domains")  # what it says of a leaf that is in


async def test_a_leaf_comes_in_with_no_password_of_the_hub_but_centrals(tmp_path, hub, until):
    async with hub.central_answers():
        for login in ("leaf:leaf", "bridge:bridge-word"):
            user, word = login.split(":")
            one = Leaf(tmp_path / user, hub, user)
            url = f"nats-leaf://{user}:{word}@127.0.0.1:{hub.server.leaf_port}"
            (one.folder / "nats-login/remote.conf").write_text(f'url: "{url}"\n')
            with running(one.server):
                await until(lambda one=one: one.server.said("Authorization Violation"))


async def test_who_has_a_password_comes_in_while_no_central_answers(tmp_path):
    team = 'TEAM_x { users: [{ user: x, password: "team-word" }] }\n\n      SUBLET {'
    hub = started_hub(tmp_path / "hub", {"SUBLET {": team})
    try:
        for login in ("bridge:bridge-word", "x:team-word"):
            client = await nats.connect(hub.url(login), allow_reconnect=False)
            await client.flush()
            await client.close()
    finally:
        await hub.close()


async def test_a_token_is_no_login_for_a_client(hub):
    token = hub.reviews.issue("a")
    async with hub.central_answers():
        with pytest.raises(Unavailable) as refused:
            await connect(hub.url(f"leaf:{token}"), name="node/a", connect_timeout_s=0.5, clock=SystemClock())
    assert refused.value.reason == "login"


async def test_central_away_keeps_who_is_in_and_lets_others_wait(tmp_path, hub, until):
    a, b = leaf(tmp_path, hub, "a"), leaf(tmp_path, hub, "b")
    with running(a.server, b.server):
        async with hub.central_answers():
            agent = await at_the_hub(a)
        await agent.publish_durable("sublet.cluster.v1.intent.a.0a-1", b"1", msg_id="1")
        hub.server.kill()
        hub.server.start()
        async with hub.central_answers():  # both come back by themselves
            late = await at_the_hub(b)
            await reaches(agent, "a")
            await agent.publish_durable("sublet.cluster.v1.intent.a.0a-1", b"2", msg_id="2")
        await agent.drain()
        await late.drain()


async def test_the_api_server_away_is_a_refusal_and_no_right(tmp_path, hub, until):
    one = leaf(tmp_path, hub, "a")
    hub.reviews.away = True
    async with hub.central_answers():
        with running(one.server):
            await until(lambda: one.server.said("Authorization Violation"))
            hub.reviews.away = False
            agent = await at_the_hub(one)
            await agent.drain()


def test_the_audience_is_the_one_of_the_chart():
    (daemon,) = [d for d in documents() if d["kind"] == "DaemonSet"]
    text = json.dumps(daemon["spec"]["template"]["spec"]["volumes"])
    assert f'"audience": "{AUDIENCE}"' in text
