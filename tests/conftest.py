"""Fixtures for all tests."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import hypothesis
import looptime
import pytest
import structlog

from shared.adapters.nats_server import NatsServer

PATIENCE_S = 20.0

# No property may depend on how busy the machine is.
hypothesis.settings.register_profile("any-machine", deadline=None)
hypothesis.settings.load_profile("any-machine")


@pytest.fixture(scope="session", autouse=True)
def no_stray_loop() -> Iterator[None]:
    """A current loop that is closed at the end: the test plugin would get one that nobody closes (Python 3.11)."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


@pytest.fixture(autouse=True)
def fresh_logging() -> Iterator[None]:
    """A test that sets up logging binds the stream that was captured for it: no later test may write there."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A real NATS server with JetStream, one for each test module."""
    server = NatsServer(store_dir=tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Wait for a condition instead of for a time."""

    async def wait(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.005)

    return wait


@pytest.fixture
def virtual() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine in virtual time: an hour's wait passes at once, and always in the same order."""

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
            return runner.run(work)

    return run
