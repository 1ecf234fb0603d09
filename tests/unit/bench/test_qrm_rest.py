"""What qrm opens at rest is counted where the count disturbs no measurement."""

import sys
from collections.abc import Callable

import pytest

from bench.rigs import qrm_rest


def test_files_are_counted_and_nothing_listens_on_in_the_process_that_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    listening: list[Callable[..., None]] = []
    monkeypatch.setattr(sys, "addaudithook", listening.append)

    files, _ = qrm_rest.opened_elsewhere(4)

    assert files > 0
    assert not listening
