"""Fixtures for all tests."""

import asyncio
import functools
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from importlib.metadata import entry_points
from typing import Any

import hypothesis
import looptime
import pytest
import structlog
from slow_machines import patience_s
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from shared import registry
from shared.adapters.nats.embedded.server import NatsServer

pytest_plugins = ("kube_cluster", "kube_agents")

PATIENCE_S = 20.0
HOST = "this host"
ON_THIS_HOST = ("tests/contract/", "tests/integration/")
SLOW_FOLDERS = ("tests/e2e/", "tests/integration/")

# No property may depend on how busy the machine is; to explain a case costs more than to find it, and is seen only of
# what fails.
PHASES = [phase for phase in hypothesis.Phase if phase != hypothesis.Phase.explain]
hypothesis.settings.register_profile("any-machine", deadline=None, phases=PHASES)
hypothesis.settings.load_profile("any-machine")


# Pods that tests start are theirs, also where the tests were called with sudo.
for variable in ("SUDO_UID", "SUDO_GID"):
    os.environ.pop(variable, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays until the end: looking through it for garbage takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class FilesApart(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist has no types
    """The tests of a file stay together; those that use this host's cgroups go one after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return HOST if nodeid.endswith(f"@{HOST}") else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesApart:
    """Which tests of `make unit` run side by side."""
    return FilesApart(config, log)


def pytest_xdist_auto_num_workers() -> int:
    """A worker more than CPUs: many tests wait for a server or another process most of their time."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs this host's cgroups says so in its name, which is all that the scheduler knows of a test."""
    default_s = float(config.getini("timeout"))
    for item in items:
        marker = item.get_closest_marker("timeout")
        item.add_marker(pytest.mark.timeout(patience_s(marker.args[0] if marker else default_s)), append=False)
        if item.get_closest_marker("slow") and not item.nodeid.startswith(SLOW_FOLDERS):
            raise pytest.UsageError(f"{item.nodeid}: `make test-chaos` looks for slow tests in {SLOW_FOLDERS} alone")
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.xdist_group(HOST))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """None that needs this host lies where others run beside it."""
    if item.get_closest_marker("root") and item.nodeid.startswith("tests/unit/"):
        pytest.fail(f"a test marked root belongs in {' or '.join(ON_THIS_HOST)}", pytrace=False)


def virtual_loop() -> asyncio.AbstractEventLoop:
    """A loop that looks for input once, not 42 times, before it moves the time on: nothing comes from outside here."""
    return looptime.new_event_loop(noop_cycles=0)


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


@pytest.fixture(scope="session", autouse=True)
def wheels_read_once() -> Iterator[None]:
    """The wheels on a path stay as they are: to read all their entry points is most of what building an app costs."""
    read = functools.cache(lambda _path, group: tuple(entry_points(group=group)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "entry_points", lambda group: read(tuple(sys.path), group))
        yield


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
        async with asyncio.timeout(patience_s(PATIENCE_S)):
            while not condition():
                await asyncio.sleep(0.005)

    return wait


@pytest.fixture(scope="session")
def virtual() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine in virtual time: an hour's wait passes at once, and always in the same order."""

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=virtual_loop) as runner:
            return runner.run(work)

    return run
