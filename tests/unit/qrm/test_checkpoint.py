"""The checkpoint: kept on change, read back, and set aside when it cannot be trusted."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from test_placement import advise

from services.qrm.adapters.checkpoint.file import FILE, CheckpointFile
from services.qrm.core.checkpoint import RISES_EVERY_S
from shared.errors import Refused

LONG_AFTER, SOON_AFTER = timedelta(seconds=RISES_EVERY_S), timedelta(seconds=RISES_EVERY_S - 1)
POOLS = {"share": "11,35", "reclaim": "0-10"}


def saved(tmp_path: Path) -> Path:
    CheckpointFile(tmp_path, "n1").save(advise(share=2, reclaim=46), POOLS)
    return tmp_path / FILE


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    saved(tmp_path)
    found = CheckpointFile(tmp_path, "n1").load()
    assert found is not None
    assert (found.advice, found.pools) == (advise(share=2, reclaim=46), POOLS)


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert CheckpointFile(tmp_path, "n1").load() is None


def test_it_is_written_only_when_something_has_changed(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path, "n1")
    advice = advise(share=2, reclaim=46)
    file.save(advice, POOLS)
    (tmp_path / FILE).unlink()
    file.save(advice.model_copy(update={"seq": 8, "why": ()}), POOLS)
    assert not (tmp_path / FILE).exists()
    file.save(advice, POOLS | {"share": "11"})
    assert (tmp_path / FILE).exists()


@pytest.mark.parametrize(
    ("changes", "after", "written"),
    [
        ({"reclaimed_memory_bytes": 1003}, LONG_AFTER, False),
        ({"reclaimed_memory_bytes": 1006}, LONG_AFTER, True),
        ({"reclaimed_memory_bytes": 1006}, SOON_AFTER, False),
        ({"reclaimed_memory_bytes": 994}, SOON_AFTER, True),
        ({"reclaimed_cpu_millis": 1980}, SOON_AFTER, True),
        ({"reclaimed_cpu_millis": 2020}, -LONG_AFTER, True),
        ({"reclaimed_memory_limit_bytes": 1}, SOON_AFTER, True),
        ({"mode": "observe"}, SOON_AFTER, True),
        ({"valid_for_s": 11.0}, SOON_AFTER, True),
    ],
    ids=["hardly more memory", "more memory", "more soon after", "less memory", "fewer CPUs", "the clock went back",
         "a limit", "another mode", "another lease"],
)  # fmt: skip
def test_it_is_written_where_a_restart_would_do_something_else(
    tmp_path: Path, changes: dict[str, float | str], after: timedelta, written: bool
) -> None:
    file = CheckpointFile(tmp_path, "n1")
    offer = {"reclaimed_memory_bytes": 1000, "reclaimed_cpu_millis": 2000}
    advice = advise(share=2, reclaim=46).model_copy(update=offer)
    file.save(advice, POOLS)
    (tmp_path / FILE).unlink()
    file.save(advice.model_copy(update={"sent_at": advice.sent_at + after, **changes}), POOLS)
    assert (tmp_path / FILE).exists() is written


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param(lambda text: text[: len(text) // 2], "file: not JSON", id="half written"),
        pytest.param(lambda text: "", "file: not JSON", id="empty"),
        pytest.param(lambda text: text.replace("0-10", "0-11"), "the checksum is not", id="a changed body"),
        pytest.param(lambda text: text.replace('"schema": 1', '"schema": 2'), "schema: want 1", id="another version"),
        pytest.param(lambda text: json.dumps({"machineState": {}}), "checksum: must be given", id="another program's"),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_one_is_set_aside_and_the_word_says_why(
    tmp_path: Path, spoil: Callable[[str], str], says: str
) -> None:
    path = saved(tmp_path)
    path.write_text(spoil(path.read_text()))
    with pytest.raises(Refused, match=says):
        CheckpointFile(tmp_path, "n1").load()
    assert not path.exists()
    assert (tmp_path / f"{FILE}.refused").exists()
    assert CheckpointFile(tmp_path, "n1").load() is None


def test_another_node_s_checkpoint_is_not_used(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(Refused, match="it belongs to node 'n1', this is 'n2'"):
        CheckpointFile(tmp_path, "n2").load()
