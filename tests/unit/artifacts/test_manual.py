"""Manual pages and completions say what the parser says, and their readers understand them."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.artifacts.checkout import Checkout
from deploy.artifacts.completions import PLACES, scripts
from deploy.artifacts.manual import pages, parser
from deploy.artifacts.share import write

EPOCH_S = 1_700_000_000
SYNTAX = {"bash": ("bash", "-n"), "zsh": ("zsh", "-n"), "fish": ("fish", "--no-execute")}


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return pages("1.2.3", EPOCH_S)


def test_there_is_a_page_of_each_command_and_it_names_each_option(written: dict[str, str]) -> None:
    group = parser()
    shown = {name for name, command in group.commands.items() if not command.hidden}
    assert len(shown) > 20
    assert set(written) == {"sublet.1", *(f"sublet-{name}.1" for name in shown)}
    for name in shown:
        page, parts = written[f"sublet-{name}.1"], [group.commands[name]]
        for part in parts:
            parts += getattr(part, "commands", {}).values()
            options = [word for parameter in part.params for word in parameter.opts if word.startswith("--")]
            missing = [word for word in options if word.replace("-", "\\-") not in page]
            assert not missing, (name, missing)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff formats manual pages")
def test_the_formatter_has_nothing_to_say_against_a_page(written: dict[str, str]) -> None:
    for name, text in written.items():
        words = ["groff", "-man", "-ww", "-z", "-Tutf8"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
        assert not done.stderr, (name, done.stderr)
        assert text.isascii()


def test_a_page_begins_with_name_version_and_day(written: dict[str, str]) -> None:
    assert written["sublet-up.1"].splitlines()[:3] == [
        '.TH SUBLET-UP 1 "2023-11-14" "Sublet 1.2.3" "Sublet"',
        ".SH NAME",
        "sublet\\-up \\- Start NATS and the six services on this machine",
    ]


@pytest.mark.parametrize("shell", PLACES)
def test_a_shell_reads_its_script_and_asks_the_command(shell: str, tmp_path: Path) -> None:
    text = scripts()[PLACES[shell]]
    assert f"_SUBLET_COMPLETE=complete_{shell}" in text
    program, option = SYNTAX[shell]
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    script = tmp_path / "script"
    script.write_text(text)
    done = subprocess.run([program, option, str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_a_command_by_the_script_as_it_is_installed(tmp_path: Path) -> None:
    write(Checkout(tmp_path, EPOCH_S), tmp_path)
    program = tmp_path / "sublet"
    program.write_text('#!/bin/sh\n[ "$_SUBLET_COMPLETE $COMP_CWORD" = "complete_bash 1" ] && echo status\n')
    program.chmod(0o755)
    asked = f". {tmp_path / PLACES['bash']}; COMP_WORDS=(sublet st); COMP_CWORD=1; _sublet_completion {program}"
    done = subprocess.run(
        ["bash", "-c", f'{asked}; echo "${{COMPREPLY[*]}}"; complete -p sublet'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["status", "complete -o default -F _sublet_completion sublet"]


def test_what_is_written_depends_on_the_commit_alone(tmp_path: Path) -> None:
    for place in ("first", "second"):
        write(Checkout(tmp_path, EPOCH_S), tmp_path / place)
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "first", tmp_path / "second")
    )
    assert first == second
    assert gzip.decompress(first[Path("man/man1/sublet.1.gz")]).startswith(b".TH SUBLET 1")
