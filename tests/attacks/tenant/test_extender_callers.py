"""A pod of the cluster reaches the extender's port: it gets answers, and changes nothing for anybody.

What it may try: have all room held back for pods that there are not, pass for a scheduler, send what is no call, or so
much that nobody else is answered.
"""

import asyncio
import json
import random
import ssl
import tempfile

import aiohttp
import pytest
from bus_rights_rig import free_port
from extender_rig import ExtenderRig, asked, batch_pod, extending, node, offer

from services.central.adapters.https.certificate import renewed
from services.central.ports.https import HttpRequest
from services.central.scheduling.answers import MOST_BYTES, MOST_NODES
from shared.adapters.clock import SystemClock
from shared.contracts.cluster.decision import Decided

VERBS = ("filter", "prioritize", "preempt")


async def undisturbed(rig: ExtenderRig) -> None:
    """The scheduler gets the room that there is, and what was decided is about its pods alone."""
    assert (await rig.filter(batch_pod("a", 700), "n1"))["NodeNames"] == ["n1"]
    assert len(rig.extender.reservations) == 1
    said: list[Decided] = rig.said.decided
    assert {str(one.about) for one in said} <= {"pod/team/a"}


async def test_room_is_not_held_back_for_pods_that_there_are_not() -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        for number in range(100):
            for verb in VERBS:
                await rig.post(f"/v1/{verb}", asked(batch_pod(f"x{number}", 700), "n1"), ours=False)
        await undisturbed(rig)


async def test_nobody_passes_for_a_scheduler_with_a_certificate_of_his_own() -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        mine = renewed(None, rig.settings.names, SystemClock().wall())
        assert mine is not None
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        with tempfile.NamedTemporaryFile() as file:
            file.write(mine.certificate + mine.key)
            file.flush()
            trusting.load_cert_chain(file.name)
        url = f"https://127.0.0.1:{rig.settings.port}/v1/filter"
        body = json.dumps(asked(batch_pod("x", 700), "n1")).encode()
        with pytest.raises(aiohttp.ClientError):
            async with aiohttp.ClientSession() as session, session.post(url, data=body, ssl=trusting) as reply:
                await reply.read()
        await undisturbed(rig)


async def test_a_body_of_twenty_thousand_whole_nodes_is_not_read() -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        whole = {"metadata": {"name": "n", "annotations": {"a": "x" * 500}}}
        body = json.dumps({"Pod": batch_pod("x"), "Nodes": {"items": [whole] * 20_000}}).encode()
        assert len(body) > MOST_BYTES
        status, why = await rig.post("/v1/filter", body, ours=False)
        assert (status, str(MOST_BYTES) in why) == (413, True)
        await undisturbed(rig)


@pytest.mark.parametrize("ours", [True, False])
async def test_a_call_about_more_nodes_than_any_scheduler_names_is_refused(*, ours: bool) -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        names = [f"x{number}" for number in range(MOST_NODES + 1)]
        victims: dict[str, object] = {name: {"Pods": []} for name in names}
        for verb in VERBS:
            body = {"Pod": batch_pod("x"), "NodeNames": names, "NodeNameToMetaVictims": victims}
            status, why = await rig.post(f"/v1/{verb}", body, ours=ours)
            assert (status, str(MOST_NODES) in why["Error"]) == (400, True)
        assert (await rig.post("/v1/filter", asked(batch_pod("x"), *names[1:]), ours=False))[0] == 200
        await undisturbed(rig)


async def test_names_of_nodes_that_there_are_not_stay_nowhere() -> None:
    async with extending(free_port(), node("n1")) as rig:
        view = rig.extender.view
        assert view.state("n1", 0.0) is view.state("n1", 0.0)
        assert view.state("x", 0.0) == view.state("x", 0.0)
        assert view.state("x", 0.0) is not view.state("x", 0.0)
        await rig.hear(offer("n1", 1, 700))
        await undisturbed(rig)


async def test_a_scheduler_is_answered_between_strangers() -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        (route,) = [one for one in rig.extender.answers.routes if one.path == "/v1/filter"]
        order: list[str] = []

        async def call(who: str, client: str | None) -> None:
            body = json.dumps(asked(batch_pod(who, 1), "n1")).encode()
            await route.answer(HttpRequest(route.path, body, client=client))
            order.append(who)

        strangers = [call(f"stranger-{number}", None) for number in range(20)]
        await asyncio.gather(*strangers, call("scheduler", rig.settings.names[0]))
        assert order[0] == "scheduler"
        assert len(order) == 21


WORDS: list[object] = [
    *(None, True, 5, -1, 1e300, "", "n1", [], {}, [None], ["n1"]),
    *({"metadata": 5}, {"metadata": {"name": "x"}}, {"items": [5]}),
    *({"n1": None}, {"n1": {"Pods": 5}}, {"n1": {"Pods": [{"UID": 5}]}}),
]
KEYS = ("Pod", "NodeNames", "Nodes", "NodeNameToMetaVictims", "NodeNameToVictims", "nodenames")


async def test_whatever_is_sent_has_an_answer() -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        dice = random.Random(7)
        for turn in range(150):
            body = {key: dice.choice(WORDS) for key in KEYS if dice.random() < 0.5}
            text = dice.randbytes(20) if turn % 10 == 0 else json.dumps(body).encode()
            for verb in VERBS:
                status, _ = await rig.post(f"/v1/{verb}", text, ours=False)
                assert status in (200, 400), (verb, text)
        await undisturbed(rig)
