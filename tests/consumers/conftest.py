"""Fixtures of the consumer tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from consumer_rig import LANGUAGES, Language
from events_told import Teller, telling

from shared.adapters.nats.embedded.server import NatsServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    """The product's own NATS server, to kill and to start again."""
    server = NatsServer(store_dir=tmp_path / "nats")
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=LANGUAGES, ids=lambda language: language.name)
def language(request: pytest.FixtureRequest) -> Language:
    """Each language whose tools are here."""
    language: Language = request.param
    if language.missing:
        pytest.skip(f"the {language.name} consumer needs {', '.join(language.missing)}, not on this machine")
    return language


@pytest.fixture
async def teller(server: NatsServer) -> AsyncIterator[Teller]:
    """A publisher of eviction events on the server of the test."""
    async with telling(server.url) as teller:
        yield teller
