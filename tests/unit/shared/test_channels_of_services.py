"""Who makes and who reads each message, in the code of the services, is who the table of channels says."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from shared.contracts.bus.channels import CHANNELS, SUBSCRIBERS, Channel
from shared.contracts.eviction import EvictionIntent
from shared.contracts.readiness import Health
from shared.contracts.services import SERVICES
from shared.evictions.announcement import IntentStream

ROOT = Path(__file__).parents[3]
MAKE, READ = {"stamp"}, {"newest", "state_subject", "replay", "NodeMessages"}
KEPT = {"INTENTS_STREAM": "EvictionIntent", "EVENTS_STREAM": "EvictionEvent"}


@cache
def calls_in(service: str) -> tuple[ast.Call, ...]:
    """Everything that a service calls."""
    modules = (ROOT / "services" / service).rglob("*.py")
    return tuple(
        node for path in modules for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    )


def called_with(service: str, names: set[str]) -> Iterator[str]:
    """The message that is the first argument of every call of these names, or is kept in the stream that is."""
    for node in calls_in(service):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in names and node.args and isinstance(node.args[0], ast.Name):
            yield KEPT.get(node.args[0].id, node.args[0].id)
        # Who appends to the stream of intents reads the last one of a pod.
        if names == READ and name == IntentStream.__name__:
            yield EvictionIntent.__name__


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.message.__name__)
def test_a_message_is_made_by_those_in_its_row(channel: Channel) -> None:
    if channel.message is Health:  # the runner makes it for every service
        assert channel.publishers == SERVICES
        return
    made = {service for service in SERVICES if channel.message.__name__ in called_with(service, MAKE)}
    assert made == set(channel.publishers)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.message.__name__)
def test_a_message_is_read_by_those_in_its_row(channel: Channel) -> None:
    read = {service for service in SERVICES if channel.message.__name__ in called_with(service, READ)}
    assert read == set(channel.readers) - {SUBSCRIBERS}
