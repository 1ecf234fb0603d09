"""An API server that refuses, breaks off, or renews tokens while the wall clock jumps: a real HTTPS server."""

import asyncio
import contextlib
import itertools
import ssl
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web
from kube_rig.certificates import Authority

from shared.adapters.kube import access
from shared.adapters.kube.client import TOKEN_S, Kube, KubeError
from sublet.cluster.uninstalled import is_uninstalled

DAEMONSET = "/apis/apps/v1/namespaces/sublet-system/daemonsets/sublet-node"
STANDS = '{"kind": "DaemonSet", "metadata": {"name": "sublet-node", "uid": "1"}}'
DELETED = '{"kind": "DaemonSet", "metadata": {"name": "sublet-node", "deletionTimestamp": "2026-01-01T00:00:00Z"}}'
NOT_FOUND = '{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}'
RENEW_S, LIFE_S, HOURS_S = 48 * 60, 60 * 60, 3 * 3600
"""Kubelet renews a token of an hour after four fifths of it."""


class ApiServer:
    """Knows the tokens that are valid now, and what it answers to whoever shows one."""

    def __init__(self) -> None:
        self.valid: Callable[[str], bool] = lambda _token: True
        self.answer: tuple[int, str] = (200, STANDS)
        self.manner = "whole"
        self.shown: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").lower().removeprefix("bearer ")
        self.shown.append(token)
        if not self.valid(token):
            return web.json_response({"kind": "Status", "reason": "Unauthorized", "code": 401}, status=401)
        status, text = self.answer
        if self.manner == "silent":
            await asyncio.Event().wait()  # for ever
        if self.manner == "whole":
            return web.Response(status=status, text=text, content_type="application/json")
        response = web.StreamResponse(status=status)
        if self.manner == "short":
            response.content_length = len(text)
        await response.prepare(request)
        await response.write(text[: len(text) // 2].encode())
        if self.manner == "short" and request.transport is not None:
            request.transport.close()
        return response


class Pod:
    """What kubelet has put into a pod for its account, and a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.token, self.now_s = folder / "token", 0.0

    def kube(self) -> Kube:
        return Kube(monotonic=lambda: self.now_s)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture
async def api(authority: Authority) -> AsyncIterator[ApiServer]:
    made = ApiServer()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    names = authority.sign("api", "api", addresses=["IP:127.0.0.1"])
    context.load_cert_chain(names.certificate, names.key)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        patch.setenv("KUBERNETES_SERVICE_PORT", str(runner.addresses[0][1]))
        patch.setattr(access, "AUTHORITY", authority.certificate)
        yield made
    await runner.cleanup()


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    made = Pod(tmp_path)
    made.token.write_text("token-0")
    monkeypatch.setattr(access, "TOKEN", made.token)
    return made


@contextlib.asynccontextmanager
async def asked(pod: Pod) -> AsyncIterator[Kube]:
    kube = pod.kube()
    try:
        yield kube
    finally:
        await kube.close()


@pytest.mark.parametrize(
    ("status", "text", "manner", "uninstalled"),
    [
        (200, STANDS, "whole", False),
        (200, DELETED, "whole", True),
        (404, NOT_FOUND, "whole", True),
        (404, "<html>no such page</html>", "whole", False),
        (404, "{}", "whole", False),
        (401, NOT_FOUND, "whole", False),
        (403, NOT_FOUND, "whole", False),
        (429, NOT_FOUND, "whole", False),
        (500, NOT_FOUND, "whole", False),
        (503, "", "whole", False),
        (200, DELETED, "half", False),
        (200, DELETED, "short", False),
        (404, NOT_FOUND, "half", False),
        (200, DELETED, "silent", False),
        (200, DELETED.replace("sublet-node", "another"), "whole", False),
        (200, '{"metadata": null}', "whole", False),
        (200, "[]", "whole", False),
        (200, "", "whole", False),
    ],
)
async def test_only_what_the_api_server_itself_says_to_be_gone_is_uninstalled(
    api: ApiServer, pod: Pod, monkeypatch: pytest.MonkeyPatch, status: int, text: str, manner: str, uninstalled: bool
) -> None:
    monkeypatch.setattr(Kube.call, "__kwdefaults__", {**(Kube.call.__kwdefaults__ or {}), "timeout_s": 0.5})
    api.answer, api.manner = (status, text), manner
    async with asked(pod) as kube:
        assert await is_uninstalled(kube, "sublet-system", "sublet-node") is uninstalled


async def test_an_account_that_is_gone_with_its_rights_is_no_farewell(api: ApiServer, pod: Pod) -> None:
    api.valid, api.answer = (lambda _token: False), (404, NOT_FOUND)
    async with asked(pod) as kube:
        assert not await is_uninstalled(kube, "sublet-system", "sublet-node")


JUMPS = tuple(itertools.chain.from_iterable((-hours, hours) for hours in (1, 24)))


@pytest.mark.parametrize("jump_hours", JUMPS)
async def test_no_expired_token_is_shown_for_longer_than_a_minute_whatever_the_wall_clock_does(
    api: ApiServer, pod: Pod, monkeypatch: pytest.MonkeyPatch, jump_hours: int
) -> None:
    """Three hours of a pod, a call every 50 s, and early on the wall clock jumps, for good."""
    began_s = time.time()
    monkeypatch.setattr(time, "time", lambda: began_s + pod.now_s + (jump_hours * 3600 if pod.now_s > 1000 else 0))
    late: list[float] = []

    def valid(token: str) -> bool:
        ends_s = int(token.removeprefix("token-")) * RENEW_S + LIFE_S
        if pod.now_s > ends_s:
            late.append(pod.now_s - ends_s)
        return pod.now_s <= ends_s

    api.valid = valid
    async with asked(pod) as kube:
        for pod.now_s in range(0, HOURS_S, 50):
            if pod.now_s % RENEW_S < 50:
                pod.token.write_text(f"token-{pod.now_s // RENEW_S}")
            await kube.get(DAEMONSET)
    assert late == []
    assert len(set(api.shown)) == HOURS_S // RENEW_S + 1


async def test_a_401_heals_with_the_next_token_in_one_try(api: ApiServer, pod: Pod) -> None:
    async with asked(pod) as kube:
        await kube.get(DAEMONSET)
        pod.token.write_text("token-1")
        api.valid = "token-1".__eq__
        together = await asyncio.gather(*(kube.get(DAEMONSET) for _ in range(8)))
        assert [one["kind"] for one in together] == ["DaemonSet"] * 8
        assert api.shown.count("token-0") <= 9
        api.shown.clear()
        api.valid = lambda _token: False
        with pytest.raises(KubeError):
            await kube.get(DAEMONSET)
        assert api.shown == ["token-1"], "the same token is not tried twice"


async def test_a_watch_is_begun_with_the_next_token_too(api: ApiServer, pod: Pod) -> None:
    api.answer = (200, '{"type": "BOOKMARK"}\n')
    async with asked(pod) as kube:
        await kube.get("/version")
        pod.token.write_text("token-1")
        api.valid = "token-1".__eq__
        events = [event async for event in kube.watch("/api/v1/pods", "7")]
    assert events == [{"type": "BOOKMARK"}]


@pytest.mark.parametrize("text", [None, ""])
async def test_a_token_that_cannot_be_read_leaves_the_old_one_in_use(
    api: ApiServer, pod: Pod, text: str | None
) -> None:
    async with asked(pod) as kube:
        await kube.get(DAEMONSET)
        if text is None:
            pod.token.unlink()
        else:
            pod.token.write_text(text)
        pod.now_s += TOKEN_S
        await kube.get(DAEMONSET)
    assert set(api.shown) == {"token-0"}
