"""Arguments: how many a function of the product takes before they are one value with a name."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOST_ARGUMENTS = 5
COMMANDS = "sublet/commands"
"""Functions registered there are the options of a command: their number is the user's business."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def arguments(function: Function) -> int:
    """Those that a caller gives by name or place."""
    named = function.args
    every = [*named.posonlyargs, *named.args, *named.kwonlyargs]
    return len(every) - (bool(every) and every[0].arg in ("self", "cls"))


def registered(tree: ast.Module) -> set[str]:
    """The functions that a module makes commands of: `app.command()(function)`."""
    return {
        call.args[0].id
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Call)
        and isinstance(call.func.func, ast.Attribute)
        and call.func.func.attr == "command"
        and isinstance(call.args[0], ast.Name)
    }


def wide(text: str, *, of_commands: bool = False) -> Iterator[str]:
    """The functions of a module that take too many."""
    tree = ast.parse(text)
    commands = registered(tree) if of_commands else set()
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name not in commands and arguments(node) > MOST_ARGUMENTS:
            yield f"{node.name}: {arguments(node)}"


def test_no_function_takes_more_than_one_can_overlook() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "shared/*.py", "services/*.py", "sublet/*.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("no git clone")
    paths = [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]
    assert paths
    found = {
        str(path.relative_to(ROOT)): names
        for path in paths
        if (names := list(wide(path.read_text(), of_commands=COMMANDS in str(path))))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "of_commands", "says"),
    [
        ("def f(a, b, c, d, e): ...", False, []),
        ("def f(a, b, *, c, d, e, f): ...", False, ["f: 6"]),
        ("class C:\n    async def f(self, a, b, c, d, e, f): ...", False, ["f: 6"]),
        ("class C:\n    def f(self, a, b, c, d, e): ...", False, []),
        ("def f(a, b, c, d, e, f): ...\napp.command()(f)", True, []),
        ("def f(a, b, c, d, e, f): ...\napp.command(name='g')(f)", False, ["f: 6"]),
        ("def f(a): ...\ndef g(a, b, c, d, e, f): ...\napp.command()(f)", True, ["g: 6"]),
    ],
)
def test_what_takes_too_many_is_found(text: str, of_commands: bool, says: list[str]) -> None:
    assert list(wide(text, of_commands=of_commands)) == says
