"""Files that a person names: whatever is given, there is a text, or one refusal that names the file."""

import io
import os
import sys
from pathlib import Path

import pytest

from shared.errors import Refused
from shared.text_file import read_text
from sublet.terminal.given_file import read_given_text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone", "gone: no such file or directory"), (".", ".: is a directory"), ("", "'': is a directory"),
        ("a\0b", "no file has such a name"), ("x" * 300, "file name too long"), ("binary", "not UTF-8 text (byte 1)"),
        ("large", "larger than 9 bytes"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_alike_in_settings_and_on_the_command_line(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"a\xff")
    (tmp_path / "large").write_bytes(b"0123456789")
    said = []
    for read in (read_text, read_given_text):
        with pytest.raises(Refused) as refused:
            read(name, what="file", max_bytes=9)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert words in said[0]


def test_a_pipe_is_a_file_and_a_device_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"a: 1")
    os.close(write_end)
    assert read_text(f"/dev/fd/{read_end}", what="file") == "a: 1"
    os.close(read_end)
    monkeypatch.setattr("stat.S_ISBLK", lambda mode: True)
    with pytest.raises(Refused, match="a device, not a file"):
        read_text("/dev/null", what="file")


def test_standard_input_is_bounded_and_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0123456789")))
    with pytest.raises(Refused, match="standard input: larger than 9 bytes"):
        read_given_text("-", what="file", max_bytes=9)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Refused, match="standard input: is closed; name a file"):
        read_given_text("-", what="file")
