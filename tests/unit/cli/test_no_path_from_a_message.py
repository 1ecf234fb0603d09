"""No command opens, writes or runs what came in a message: in its source nothing that was awaited names a file."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3] / "sublet"
SOURCES = sorted([*(ROOT / "commands").glob("*.py"), *(ROOT / "views").rglob("*.py"), ROOT / "ask.py"])
NAMES_A_FILE = {
    "Path",
    "open",
    "PurePath",
    "replace_file",
    "write_whole",
    "_put",
    "exec",
    "eval",
    "compile",
    "__import__",
    "FileResponse",
}
OF_MODULES = {"os", "subprocess", "shutil", "runpy", "importlib", "tempfile", "pickle", "webbrowser"}
TOUCHES_ITS_OBJECT = {
    *("write_text", "write_bytes", "read_text", "read_bytes", "unlink", "rename", "mkdir", "rmdir", "touch", "chmod"),
    *("symlink_to", "hardlink_to", "open"),
}
ANSWERS = {"ask", "ask_all", "read_answer", "well_shaped", "answered", "audited"}


class Reader(ast.NodeVisitor):
    """Follows what an await brought through the assignments of a module, and notes where a file is named by it."""

    def __init__(self) -> None:
        self.from_messages: set[str] = set()
        self.found: list[int] = []

    def tainted(self, node: ast.AST) -> bool:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Await) and not self.is_local(inner.value):
                return True
            if isinstance(inner, ast.Call) and name_of(inner.func) in ANSWERS:
                return True
            if isinstance(inner, ast.Name) and inner.id in self.from_messages:
                return True
        return False

    def is_local(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and name_of(node.func) in {"to_thread", "sleep", "wait"}

    def visit_Assign(self, node: ast.Assign) -> None:
        pairs = [(target, node.value) for target in node.targets]
        for target, value in pairs:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs += zip(target.elts, value.elts, strict=False)
            elif self.tainted(value):
                self.from_messages |= {inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name)}
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        if self.tainted(node.value):
            self.from_messages.add(node.target.id)
        self.generic_visit(node)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        if isinstance(node, ast.AsyncFor) or self.tainted(node.iter):
            self.from_messages |= {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
        self.generic_visit(node)

    visit_AsyncFor = visit_For  # noqa: N815 - the name that the visitor wants

    def visit_Call(self, node: ast.Call) -> None:
        if any(self.tainted(part) for part in names_of_files(node)):
            self.found.append(node.lineno)
        self.generic_visit(node)


def name_of(function: ast.AST) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def names_of_files(call: ast.Call) -> Iterator[ast.AST]:
    """The parts of a call that say which file, program or module is meant."""
    name, function = name_of(call.func), call.func
    if name in NAMES_A_FILE and call.args:
        yield call.args[0]
    if isinstance(function, ast.Attribute):
        if isinstance(function.value, ast.Name) and function.value.id in OF_MODULES:
            yield from call.args
        if name in TOUCHES_ITS_OBJECT:
            yield function.value


def found_in(text: str) -> list[int]:
    tree, reader = ast.parse(text), Reader()
    for _ in range(3):  # what is assigned below is used above, in functions that are called later
        reader.found.clear()
        reader.visit(tree)
    return reader.found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_command_names_a_file_by_what_it_was_told(path: Path) -> None:
    assert found_in(path.read_text()) == []


@pytest.mark.parametrize(
    "bad",
    [
        "central = await ask(bus, node, 'central')\nPath(central['config']['file'])",
        "a, b = await ask(x), 1\ngoal = a['file']\nos.replace(fresh, goal)",
        "open((await bus.get('b', 'k')).value)",
        "async for event in bus.follow(s):\n    (folder / event.subject).write_text('')",
        "facts = read(await ask_all(bus))\nsubprocess.run([facts.answered('qrm', 'x', '')])",
        "if row := facts.answered('a', 'b', ''):\n    row.write_text('')",
    ],
)
def test_the_rule_sees_one_that_does(bad: str) -> None:
    assert found_in("async def f():\n" + "".join(f"    {line}\n" for line in bad.splitlines()))


def test_what_a_person_named_may_be_written() -> None:
    assert found_in("async def f(file):\n    text = await bus.get('a', 'b')\n    Path(file).write_text(text)\n") == []
