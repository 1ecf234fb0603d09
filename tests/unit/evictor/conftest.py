"""Fixtures of the evictor's tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from evictor_world import MakeNode, Node

from shared.adapters.ledger.sqlite import SqliteLedger

sys.path.insert(0, str(Path(__file__).parents[2] / "trees"))


@pytest.fixture
def node(tmp_path: Path) -> MakeNode:
    """Makes a node whose evictor has the given settings."""
    return lambda **section: Node(tmp_path / "state", **section)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    """A ledger that is open and empty; its first episode is 5."""
    ledger = SqliteLedger(tmp_path)
    ledger.open(first_episode=5)
    yield ledger
    ledger.close()
