"""Method names: five verbs that say nothing are not names of public methods: what is looked at, told or kept?"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
VAGUE = {"look", "take", "tell", "keep", "hold"}


def vague_methods(text: str) -> list[str]:
    """Public methods of classes that have such a name."""
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    methods = [(owner, body) for owner in classes for body in owner.body]
    return [
        f"{owner.name}.{method.name}"
        for owner, method in methods
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name in VAGUE
    ]


def test_no_public_method_has_a_vague_name() -> None:
    modules = [path for package in ("shared", "services", "sublet") for path in (ROOT / package).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): vague_methods(path.read_text()) for path in sorted(modules)}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_vague_name_is_found() -> None:
    assert vague_methods("class A:\n    async def tell(self): ...\n    def _keep(self): ...") == ["A.tell"]
