"""Reads the docstrings of models and fields, as Markdown on one line."""

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from pydantic import BaseModel

from shared.errors import BadConfig

_PAGE = re.compile(r"docs/((?:facts/)?[\w-]+\.md(?:#[\w-]+)?)")


def summary(thing: object) -> str:
    """The first paragraph of a docstring."""
    return _markdown((inspect.getdoc(thing) or "").partition("\n\n")[0])


def sentence(model: type[BaseModel], name: str) -> str:
    """What stands below a field; where a model only gives it another default, what stands below it in its base.

    Raises:
        BadConfig: nothing does.
    """
    for base in model.__mro__:
        if issubclass(base, BaseModel) and base is not BaseModel and (said := _below_fields(base).get(name)):
            return _markdown(said)
    raise BadConfig(
        f"{model.__module__}.{model.__qualname__}.{name} has no sentence; write one below the field",
        reason="undocumented",
    )


@cache
def _below_fields(model: type[BaseModel]) -> Mapping[str, str]:
    """The text below each field of a class, as its source has it."""
    (written,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    found: dict[str, str] = {}
    for field, below in pairwise(written.body if isinstance(written, ast.ClassDef) else []):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                found[name] = said
    return found


def _markdown(text: str) -> str:
    """On one line; pages of the folder `docs` become links that work from there."""
    return _PAGE.sub(r"[\1](\1)", " ".join(text.split()))
