"""The attack suite: what somebody may try, by who he is, on real parts; `make test-attacks` runs it."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here is an attack."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("attack")
