"""Fixtures of the tests that kill."""

import pytest

from sublet.host import supervise


@pytest.fixture
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed comes back at once: these tests are about the kills, not about the pauses between them."""
    monkeypatch.setattr(supervise, "LONGEST_PAUSE_S", supervise.FIRST_PAUSE_S)
