"""Names: a public class name stands once in shared, services and sublet together, so that a search finds one thing."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
OF_PLUG_INS = {"Settings": ("services/advisor/policies", "services/evictor/plugins", "services/reporter/fields")}
"""Each file of these folders has one of its own, as its page says."""
TWICE: dict[str, int] = {
    "Pressure": 2,  # of the kernel in a sample, named in its JSON Schema; of a plugin, which wheels import
    "View": 2,  # of a policy and of a plugin, which wheels import
}
"""Still there more than once, and how often at most; a number here only falls."""


def places() -> dict[str, list[str]]:
    """Every public class by its name, and the modules that define one."""
    found = defaultdict(list)
    for package in ("shared", "services", "sublet"):
        for path in sorted((ROOT / package).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text())):
                if (
                    isinstance(node, ast.ClassDef)
                    and not node.name.startswith("_")
                    and not (where.startswith(OF_PLUG_INS.get(node.name, ())))
                ):
                    found[node.name].append(where)
    return found


def test_a_public_class_name_stands_once() -> None:
    often = {name: where for name, where in places().items() if len(where) > 1}
    assert {name: len(where) for name, where in often.items()} == TWICE, often
