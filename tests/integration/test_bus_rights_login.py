"""How a leaf of the chart comes to the hub: with a token that kubelet renews, over TLS where there is a certificate."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bus_rights_rig import PASSWORD, RENDERED, Hub, Leaf, running, started_hub
from test_bus_rights import at_the_hub

from shared.contracts.subjects import CONFIG_BUCKET, STREAMS

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
    for leaf in (knows, trusts_another, plain):
        leaf.log_in_with(hub.reviews.issue(leaf.node))
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
