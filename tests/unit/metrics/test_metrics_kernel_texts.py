"""How the texts of the kernel's files are parsed, well formed or not."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_trees import put

from services.metrics.sources.pressure import parse
from shared.adapters.host.hostfs import read_text
from shared.core.text.kernel_text import key_values, meminfo_bytes, task_state


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("some avg10=1.00 avg60=2.00 avg300=3.00 total=4\n", (1.0, 2.0, 0.0), id="no full line"),
        pytest.param("", None, id="empty"),
        pytest.param("full avg10=1.00 avg60=2.00 avg300=3.00 total=4\n", None, id="no some line"),
    ],
)
def test_pressure_files_of_older_kernels_are_read(text: str, wanted: tuple[float, float, float] | None) -> None:
    found = parse(text)
    assert wanted == (found and (found.some_avg10_percent, found.some_avg60_percent, found.full_avg10_percent))


@given(st.text(), st.sampled_from("RSDZTtXIP"))
def test_the_state_of_a_task_is_found_whatever_its_command_is_called(command: str, state: str) -> None:
    assert task_state(f"12 ({command}) {state} 1 12 12 0 -1") == state


def test_a_task_line_without_a_command_has_no_state() -> None:
    assert task_state("") == task_state("12 R") == ""


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.integers(0, 2**63)))
def test_key_values_come_back_as_written(values: dict[str, int]) -> None:
    text = "".join(f"{key} {value}\n" for key, value in values.items())
    assert key_values(text, [*values, "NOT THERE"]) == values
    assert key_values(text.rstrip(), values) == values


def test_a_line_that_is_no_number_is_left_out() -> None:
    assert key_values("a b\nab 3\nb -1\nc \n", ("a", "b", "c")) == {}


@pytest.mark.parametrize("before", ["", "Node 0 "])
def test_meminfo_fields_are_taken_by_their_whole_name_and_need_a_unit(before: str) -> None:
    text = "".join(
        f"{before}{line}\n" for line in ("Inactive:   9 kB", "Inactive(file):  2 kB", "HugePages_Total:   4")
    )
    assert meminfo_bytes(text, ("Inactive(file)", "HugePages_Total", "file)", "MemFree")) == {"Inactive(file)": 2048}


def test_a_long_file_is_read_to_its_end(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in itertools.islice(itertools.count(), 40_000))
    put(tmp_path / "long", text)
    assert read_text(str(tmp_path / "long")) == text


def test_a_file_that_is_there_but_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_text(str(tmp_path))


def test_a_vanished_file_is_absent() -> None:
    assert read_text("/proc/0/stat") is None
    assert read_text(str(Path("/proc/self/stat/below"))) is None
