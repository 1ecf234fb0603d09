"""What a Debian package says that it takes once installed."""

from pathlib import Path

from deploy.artifacts.debian import installed_kib


def test_files_count_in_whole_kib_and_all_else_as_one(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/empty").write_bytes(b"")
    (tmp_path / "usr/bin/one").write_bytes(b"x")
    (tmp_path / "usr/bin/two").write_bytes(b"x" * 1025)
    (tmp_path / "usr/bin/link").symlink_to("two")
    assert installed_kib(tmp_path) == 2 + 0 + 1 + 2 + 1


def test_names_that_were_in_a_folder_for_a_moment_leave_no_trace(tmp_path: Path) -> None:
    """Compiled modules are written under a random name first, and a folder that has grown for it stays large."""
    folder = tmp_path / "modules"
    folder.mkdir()
    before = installed_kib(tmp_path)
    for number in range(500):
        (folder / f"{number:0200}").touch()
    for path in folder.iterdir():
        path.unlink()
    assert installed_kib(tmp_path) == before
