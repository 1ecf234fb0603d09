"""Fixtures of the integration tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.adapters.nats.embedded.server import NatsServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    """A NATS server of the test's own, to kill and to start again."""
    server = NatsServer(store_dir=tmp_path / "nats")
    server.start()
    yield server
    server.stop()
