"""What a person may type wrongly: a row says the words, and what the answer must be."""

import io
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup

from shared.core.scan import modules_in
from sublet import cli, commands

NEVER = (
    "Traceback",
    "Errno",
    "Value error",
    "Input should",
    "codec can't",
    "Field required",
    "<unicode string>",
    "NoneType",
    "constrained-",
)
"""Words of the libraries below; nobody outside can use them."""
FILES = {
    "binary.yaml": b"\xff\xfe\x00\x01",
    "empty.yaml": b"",
    "broken.yaml": b"a: [",
    "list.yaml": b"[1, 2]",
    "text.yaml": b"just words",
    "header.csv": b"time_s,id,usage_cores\n",
    "negative.csv": b"time_s,id,usage_cores\n0,a,-1\n1,a,NaN\n2,a,abc\n",
    "huge.csv": b"time_s,id,usage_cores\n0,a,1e30\n60,a,1e30\n",
    "columns.csv": b"id,when,what\n1,2,3\n",
    "good.csv": b"time_s,id,usage_cores\n0,a,1\n60,a,2\n120,a,1\n",
    "damaged.gz": b"\x1f\x8b\x08\x00garbage",
    "folder/keep": b"",
}


@dataclass(frozen=True)
class Row:
    """A command line as it is typed after `sublet`, and what must come of it."""

    typed: str
    code: int
    words: str
    """Parts of the answer, with `|` between them."""
    stdin: str = ""

    def __str__(self) -> str:
        return f"{self.typed} {self.stdin}".strip()[:70]


def row(typed: str, code: int, words: str, stdin: str = "") -> Row:
    """A row; a word in a table is shorter than a class."""
    return Row(typed, code, words, stdin)


@dataclass(frozen=True)
class Answer:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str


@contextmanager
def machine(folder: Path) -> Iterator[None]:
    """A folder with files to be misused, as the current one, and no Sublet anywhere."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "root/sys/fs/cgroup/cpuset").mkdir(parents=True)
    (folder / "state").mkdir()
    before, here = dict(os.environ), Path.cwd()
    for name in [name for name in before if name.startswith(("SUBLET_", "KUBE"))]:
        del os.environ[name]
    os.environ.update(
        HOME=str(folder), SUBLET_STATE_DIR=str(folder / "state"), SUBLET_HOST_ROOT=str(folder / "root"),
        SUBLET_NODE="node1", SUBLET_NATS_URL="nats://127.0.0.1:1",
    )  # fmt: skip
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


def application() -> typer.Typer:
    """Every command, as `sublet` has them."""
    return cli.build(modules_in(commands))


def leaf_commands(app: typer.Typer) -> dict[str, TyperCommand]:
    """Every command by its words, hidden ones too; groups are no commands."""
    return dict(_leaves(typer.main.get_group(app)))


def _leaves(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, TyperCommand]]:
    for name, inner in group.commands.items():
        if isinstance(inner, TyperGroup):
            yield from _leaves(inner, (*path, name))
        else:
            assert isinstance(inner, TyperCommand)
            yield " ".join((*path, name)), inner


def attempt(app: typer.Typer, wrong: Row) -> Answer:
    """Type a row at the door through which everybody comes."""
    out, err, old = io.StringIO(), io.StringIO(), (sys.stdin, sys.stdout, sys.stderr, sys.argv)
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(wrong.stdin.encode())), out, err
    sys.argv = ["sublet"]
    try:
        code = cli.call(app, shlex.split(wrong.typed))
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdin, sys.stdout, sys.stderr, sys.argv = old
    return Answer(code, out.getvalue(), err.getvalue())


def written(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, so that a change is seen."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(app: typer.Typer, folder: Path, wrong: Row) -> Answer:
    """The answer to a row, which has the row's code and words in our own form, and has changed no file."""
    before = written(folder)
    answer = attempt(app, wrong)
    assert answer.code == wrong.code, answer
    assert answer.err.startswith("sublet: "), answer
    assert [word for word in wrong.words.split("|") if word not in answer.err] == [], answer
    assert [word for word in NEVER if word in answer.err + answer.out] == []
    assert written(folder) == before
    return answer
