"""The table of channels, and what is made of it and of the list of services: lines of `deploy`."""

from pathlib import Path

import pytest

from shared.contracts.bus.channels import CHANNEL_OF, CHANNELS, TOKENS, Channel, kept_in
from shared.contracts.deploy.block import Block
from shared.contracts.deploy.files import written
from shared.contracts.eviction import EvictionEvent
from shared.contracts.readiness import Health
from shared.contracts.services import SERVICES

ROOT = Path(__file__).parents[3]


def test_the_committed_lines_of_deploy_are_what_the_tables_make() -> None:
    """After a change of a table: make schemas, then render the chart."""
    for path, text in written(ROOT).items():
        assert path.read_text() == text, f"{path} is out of date: run make schemas"


def test_a_message_has_one_row_and_its_kind_in_the_subject() -> None:
    assert len(CHANNEL_OF) == len(CHANNELS)
    assert len({channel.prefix for channel in CHANNELS}) == len(CHANNELS)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.message.__name__)
def test_every_word_of_a_subject_has_a_meaning_and_every_sender_is_a_service(channel: Channel) -> None:
    assert set(channel.tokens) <= set(TOKENS)
    assert "node" in channel.tokens or not channel.of_nodes
    assert set(channel.publishers) <= set(SERVICES)
    assert channel.readers


def test_a_subject_has_any_where_no_token_is_given() -> None:
    assert CHANNEL_OF[Health].subject(service="qrm") == "sublet.node.v1.health.*.qrm"
    assert CHANNEL_OF[EvictionEvent].every_version == "sublet.cluster.*.event.>"


def test_a_stream_that_keeps_no_message_is_named() -> None:
    with pytest.raises(LookupError, match="SUBLET_DEAD_LETTERS"):
        kept_in("SUBLET_DEAD_LETTERS")


def test_lines_are_replaced_where_they_stand_and_as_far_to_the_right() -> None:
    block = Block(r"a: .*", ("a: 1", "a: 2", "a: 3"))
    assert block.in_place("x {\n  a: 9\n  b\n}\n") == "x {\n  a: 1\n  a: 2\n  a: 3\n  b\n}\n"
    assert block.in_place("a: 7\na: 8\nb\n") == "a: 1\na: 2\na: 3\nb\n"
    with pytest.raises(LookupError):
        block.in_place("b\n")
