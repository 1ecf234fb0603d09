"""Fixtures of the evictor's tests."""

import pytest
from evictor_world import Node


@pytest.fixture
def node(tmp_path):
    """Makes a node whose evictor has the given settings."""
    return lambda **section: Node(tmp_path / "state", **section)
