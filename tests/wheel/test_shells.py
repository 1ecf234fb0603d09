"""Real shells complete real commands: each reads its script where the package puts it, and asks the program itself."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clean_environment import Environment
from slow_machines import patience_s

from deploy.artifacts.completions import PLACES, scripts

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(300)]

ANSWER_LIMIT_S = patience_s(60.0)
COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x08.?|\r")


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What lies below /usr/share of a machine with the package."""
    folder = tmp_path_factory.mktemp("share")
    for place, text in scripts().items():
        (folder / place).parent.mkdir(parents=True)
        (folder / place).write_text(text)
    return folder


def shell(name: str) -> str:
    """The program, or the test is skipped by its name."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine: apt-get install {name}")
    return found


def words(environment: Environment) -> dict[str, str]:
    """What a user's shell has in its environment."""
    return {**environment.env, "PATH": f"{environment.folder}/bin:{os.environ['PATH']}", "TERM": "dumb"}


FISH = [
    ("sublet stat", {"status"}),
    ("sublet status --wat", {"--watch"}),
    ("sublet events --phase suc", {"succeeded"}),
    ("sublet sim overcom", {"overcommit"}),
]


@pytest.mark.parametrize(("typed", "offered"), FISH)
def test_fish(plain: Environment, share: Path, typed: str, offered: set[str]) -> None:
    env = words(plain) | {"XDG_DATA_DIRS": str(share)}
    done = subprocess.run(
        [shell("fish"), "--command", f'complete --do-complete "{typed}"'],
        env=env, cwd=plain.working, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {line.partition("\t")[0] for line in done.stdout.splitlines()} == offered


@pytest.mark.parametrize(("typed", "offered"), FISH)
def test_bash(plain: Environment, share: Path, typed: str, offered: set[str]) -> None:
    asked = typed.split()
    line = " ".join(f"'{word}'" for word in asked)
    script = f". {share / PLACES['bash']}; COMP_WORDS=({line}); COMP_CWORD={len(asked) - 1}; _sublet_completion sublet"
    done = subprocess.run(
        [shell("bash"), "-c", f'{script}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        env=words(plain), cwd=plain.working, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) == offered


class Terminal:
    """A shell at a terminal, typed at as a person does."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._seen = descriptor, ""

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def wait_for(self, pattern: str) -> None:
        """Wait until what was shown since the last time matches."""
        until_s = time.monotonic() + ANSWER_LIMIT_S
        while re.search(pattern, COLOURS.sub("", self._seen)) is None:
            left_s = until_s - time.monotonic()
            assert left_s > 0, f"no {pattern!r} in {self._seen!r}"
            if select.select([self._descriptor], [], [], left_s)[0]:
                self._seen += os.read(self._descriptor, 4096).decode(errors="replace")
        self._seen = ""


@contextmanager
def terminal(command: list[str], env: dict[str, str], folder: Path) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, env=env, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_zsh(plain: Environment, share: Path) -> None:
    found = share / PLACES["zsh"]
    with terminal([shell("zsh"), "-f", "-i"], words(plain), plain.working) as zsh:
        zsh.type(f"PS1=; fpath=({found.parent} $fpath); autoload -U compinit; compinit -u; print ready for keys\n")
        zsh.wait_for(r"\nready for keys")
        zsh.type("sublet statu\t")  # the first TAB loads the script, and is answered as well
        zsh.wait_for("sublet status ")
        zsh.type("--wat\t")
        zsh.wait_for("--watch ")
        zsh.type("\x15sublet sim overcom\t")
        zsh.wait_for("overcommit ")
