"""A machine without descriptors or disk: who is supervised comes back when it is over, and a supervisor never ends."""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shared.adapters.nats.embedded.server import NatsServer
from shared.settings import CommonSettings
from sublet.host import session, supervise
from sublet.host.session import Session
from sublet.host.supervise import Child

Until = Callable[[Callable[[], object]], Awaitable[None]]
SLEEPS = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(supervise, "LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(session, "SERVER_PAUSE_S", 0.02)


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """As if everything that this process may open were open: pipes, logs and forks fail with EMFILE."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def kill(child: Child) -> None:
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)


@contextlib.asynccontextmanager
async def supervised(child: Child) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(child.keep_running(lambda: None))
    try:
        yield task
    finally:
        await child.stop(5.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_child_that_dies_while_fork_fails_is_back_when_that_is_over(tmp_path: Path, until: Until) -> None:
    child = Child("metrics", SLEEPS, dict(os.environ), tmp_path / "metrics.log")
    async with supervised(child) as task:
        await until(lambda: child.pid)
        first = child.pid
        assert first is not None
        with capture_logs() as said:
            with no_descriptors():
                os.kill(first, signal.SIGKILL)
                await until(lambda: [row for row in said if row["event"] == "service.not_started"])
                assert child.pid is None
                assert not task.done()
            await until(lambda: child.pid)
        assert child.pid != first


async def test_a_child_whose_log_cannot_be_opened_runs_without_one(tmp_path: Path, until: Until) -> None:
    log = tmp_path / "metrics.log"
    child = Child("metrics", SLEEPS, dict(os.environ), log)
    async with supervised(child) as task:
        await until(lambda: child.pid)
        log.unlink()
        log.mkdir()
        kill(child)
        await until(lambda: child.restarts and child.pid)
        assert not task.done()
        log.rmdir()
        kill(child)
        await until(lambda: child.restarts == 2 and child.pid and log.is_file())


async def test_a_log_that_is_a_link_is_not_written(tmp_path: Path, until: Until) -> None:
    (tmp_path / "precious").write_text("")
    (tmp_path / "metrics.log").symlink_to(tmp_path / "precious")
    child = Child("metrics", [sys.executable, "-c", "print('x' * 100)"], dict(os.environ), tmp_path / "metrics.log")
    async with supervised(child):
        await until(lambda: child.restarts)
    assert (tmp_path / "precious").read_text() == ""


async def test_the_nats_server_that_dies_while_fork_fails_is_back_when_that_is_over(
    tmp_path: Path, until: Until
) -> None:
    server = NatsServer(store_dir=tmp_path / "nats")
    server.start()
    keeping = asyncio.create_task(Session(CommonSettings(state_dir=tmp_path))._keep_server(server))
    try:
        with capture_logs() as said:
            with no_descriptors():
                server.kill()
                await until(lambda: [row for row in said if row["event"] == "server.down"])
            await until(lambda: server.pid is not None)
        assert not keeping.done()
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        server.stop()
