"""Every call in the code that writes a log line: its event, level and keys, from the syntax tree."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
CODE = ("services", "shared", "sublet")


@dataclass(frozen=True, slots=True)
class LogCall:
    """One call; an event that the code puts together stands with a `*` for what is put in."""

    event: str
    level: str
    keys: frozenset[str]
    file: str
    line: int

    @property
    def where(self) -> str:
        """The service or the part whose code it is."""
        parts = Path(self.file).parts
        return parts[1] if parts[0] == "services" else parts[0]


def log_calls(root: Path) -> Iterator[LogCall]:
    """Every call, in the order of files and lines."""
    for folder in CODE:
        for file in sorted((root / folder).rglob("*.py")):
            name = str(file.relative_to(root))
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and (levels := _levels(node)):
                    keys = frozenset(keyword.arg for keyword in node.keywords if keyword.arg)
                    for event in _events(node.args[0]):
                        for level in levels:
                            yield LogCall(event, level, keys, name, node.lineno)


def _levels(call: ast.Call) -> list[str]:
    """The levels that a call may write at; none: it writes no line.

    `log.info(…)`, and `say(…)` where a function has chosen `say = log.info if … else log.warning` before.
    """
    function = call.func
    if not call.args:
        return []
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "log":
        return [LEVELS[function.attr]] if function.attr in LEVELS else []
    spoken = isinstance(function, ast.Name) and function.id == "say" and call.keywords
    return ["info", "warning"] if spoken and _dotted(call.args[0]) else []


def _dotted(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value and "." in node.value
    )


def _events(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from _events(node.body)
        yield from _events(node.orelse)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
    elif isinstance(node, ast.Constant):
        yield str(node.value)
    else:
        yield f"? {ast.unparse(node)}"
