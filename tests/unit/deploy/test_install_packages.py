"""`make setup` says how far it is at a terminal, one line elsewhere, and pip's own words where it fails."""

import io
from pathlib import Path

import pytest

from deploy import install_packages

LINES = [
    "Collecting a==1\n",
    "  Downloading a.whl\n",
    "Collecting b==2 (from -r x)\n",
    "Installing collected packages: a\n",
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_each_package_is_counted_and_named() -> None:
    assert list(install_packages.said(iter(LINES), 2)) == [
        "package 1 of 2: a", "package 2 of 2: b", "installing 2 packages",
    ]  # fmt: skip


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two requirements, and a pip that prints LINES and ends as the file says."""
    pip = tmp_path / "pip"
    pip.write_text(f"print({''.join(LINES)!r}, end='')\nraise SystemExit(int(open({str(tmp_path / 'code')!r}).read()))")
    (tmp_path / "code").write_text("0")
    (tmp_path / "dev.txt").write_text("a==1 \\\n    --hash=sha256:0\nb==2 \\\n    --hash=sha256:1\n")
    monkeypatch.setattr(install_packages, "PIP", (str(pip),))
    return tmp_path / "dev.txt"


def test_in_a_log_it_is_one_line(file: Path) -> None:
    out = io.StringIO()
    assert install_packages.main(file, out) == 0
    assert out.getvalue() == f"{file}: 2 packages, a minute where none is kept from before\n"


def test_at_a_terminal_one_line_moves_on(file: Path) -> None:
    out = Terminal()
    assert install_packages.main(file, out) == 0
    assert out.getvalue().partition("\n")[2].split("\x1b[K")[1:] == [
        "package 1 of 2: a\r", "package 2 of 2: b\r", "installing 2 packages\r", "",
    ]  # fmt: skip


def test_what_pip_said_last_is_shown_where_it_fails(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file.parent / "code").write_text("3")
    assert install_packages.main(file, io.StringIO()) == 3
    assert capsys.readouterr().err == "".join(LINES)
