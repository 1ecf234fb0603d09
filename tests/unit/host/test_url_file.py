"""The address of a server from a file: one line, and nobody else's to read; its password is in no message."""

from pathlib import Path

import pytest

from shared.errors import BadConfig
from sublet.host.url_file import read_url

URL = "nats://central:s3cret@hub:4222"


def written(path: Path, text: bytes, mode: int = 0o600) -> Path:
    file = path / "url"
    file.write_bytes(text)
    file.chmod(mode)
    return file


def test_the_address_is_the_files_one_line(tmp_path: Path) -> None:
    assert read_url(written(tmp_path, f"{URL}\n".encode())) == URL


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_file_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(BadConfig, match="chmod 600"):
        read_url(written(tmp_path, URL.encode(), mode))


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"s3cret", b"nats://a:s3cret@b nats://c", b"\xffs3cret", b"nats://" + b"s3cret" * 1000]
)
def test_what_is_no_address_is_refused_without_saying_it(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(BadConfig) as refused:
        read_url(written(tmp_path, text))
    assert "s3cret" not in str(refused.value)


def test_a_file_that_is_not_there_or_no_file_and_two_ways_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="No such file"):
        read_url(tmp_path / "none")
    with pytest.raises(BadConfig, match="Is a directory"):
        read_url(tmp_path)
    with pytest.raises(BadConfig, match="want one of them"):
        read_url(written(tmp_path, URL.encode()), URL)
