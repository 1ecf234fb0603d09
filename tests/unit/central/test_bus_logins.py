"""Which of several keys answers a hub, what is too large to be a question, and how many are taken at a time."""

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from present import present

from services.central.core.logins.bus_login import ISSUER_TAG, LEAF
from services.central.core.logins.issuer_key import login_seed
from services.central.issuer import main as write_parts
from services.central.logins.controller import MAX_REQUEST_BYTES, LoginController
from shared.adapters.clock import SystemClock
from shared.adapters.ed25519 import SigningKey
from shared.adapters.nats import callout as nats_callout
from shared.adapters.nats.callout import Callout
from shared.core.bus.nats_jwt import account_key, claims_of
from shared.errors import Refused

NOW, BEFORE = (SigningKey(login_seed(word)) for word in ("now", "before"))


class Nobody:
    async def review(self, token: str, audience: str) -> dict[str, Any]:
        return {}


def logins(key: SigningKey = NOW, *, unnamed: bool = True) -> LoginController:
    return LoginController(Nobody(), key, SystemClock(), agents="agents", unnamed=unnamed)


def request(*tags: str) -> bytes:
    server = {"id": "NSERVER", "tags": list(tags)}
    asked = {"server_id": server, "user_nkey": "U", "client_info": {"kind": LEAF}, "connect_opts": {"pass": "token"}}
    return b".".join(base64.urlsafe_b64encode(json.dumps(one).encode()) for one in ({}, {"nats": asked}, {}))


def named(key: SigningKey) -> str:
    """As a server writes its tags."""
    return (ISSUER_TAG + account_key(key.public)).lower()


@pytest.mark.parametrize(
    ("tags", "answering"),
    [
        ((), "now"),
        (("zone:a",), "now"),
        ((named(NOW),), "now"),
        ((named(BEFORE), "zone:a"), "before"),
        ((named(SigningKey(login_seed("strange"))),), ""),
    ],
)
async def test_a_hub_is_answered_by_the_key_that_it_names_or_by_nobody(tags: tuple[str, ...], answering: str) -> None:
    both = {"now": logins(), "before": logins(BEFORE, unnamed=False)}
    answers = {name: await one.answer(request(*tags)) for name, one in both.items()}
    assert [name for name, answer in answers.items() if answer is not None] == [answering] * bool(answering)
    if answering:
        assert claims_of(present(answers[answering]))["iss"] == both[answering].issuer


async def test_what_no_server_would_send_is_refused_before_it_is_read() -> None:
    with pytest.raises(Refused, match="at most"):
        await logins().answer(b"." * (MAX_REQUEST_BYTES + 1))


async def test_of_a_flood_of_strangers_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_callout, "WAITING", 5)
    release, begun = asyncio.Event(), []

    async def answer(data: bytes) -> None:
        begun.append(data)
        await release.wait()

    callout = Callout("nats://hub", name="central/c", clock=SystemClock(), answers={"k": answer})
    take = callout._taking(answer)

    for _ in range(50):
        await take(Msg(Client()))
    await asyncio.sleep(0)
    assert len(begun) == 5
    release.set()
    await callout.close()


def test_the_hubs_parts_hold_the_public_key_and_every_way_to_the_others(tmp_path: Path) -> None:
    env = {"ISSUER": "now", "ROUTES": "a:6222,b:6222", "ROUTES_PASSWORD": "p", "ROUTES_PREVIOUS_PASSWORD": "q"}
    write_parts(tmp_path, env)
    parts = {file.name: file.read_text() for file in tmp_path.iterdir()}
    key = account_key(NOW.public)
    assert parts["issuer.conf"] == f'issuer: "{key}"\n'
    assert parts["tags.conf"] == f'server_tags: ["issuer:{key}"]\n'
    routes = json.loads(parts["routes.conf"].removeprefix("routes: "))
    assert routes == [f"nats-route://routes:{word}@{host}" for host in ("a:6222", "b:6222") for word in "pq"]
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_the_parts_are_written_as_the_container_does_it(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "services.central.issuer", str(tmp_path)]
    subprocess.run(words, check=True, env={"ISSUER": "now"})
    assert (tmp_path / "routes.conf").read_text() == "routes: []\n"
