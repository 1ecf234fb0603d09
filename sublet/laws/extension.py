"""The kinds of extensions with laws, and how one is found: by its file, or by its name if it is installed."""

import ast
import inspect
from dataclasses import MISSING, dataclass, fields  # FIX
from types import ModuleType
from typing import Any, Generic, TypeVar

from services.advisor.core.policy import Policy
from services.advisor.policies import template as policy_template
from services.advisor.registry import POLICIES
from services.evictor.core.plugin import Plugin
from services.evictor.plugins import template as plugin_template
from services.evictor.registry import PLUGINS
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import Refused
from shared.registry import Registry
from sublet.exit_codes import NO_SUCH_OBJECT
from sublet.laws.given_module import given_module

E = TypeVar("E", bound=Policy[Any, Any] | Plugin[Any, Any, Any])


@dataclass(frozen=True, slots=True)
class ExtensionKind(Generic[E]):
    """A kind of extension, and what a project of somebody's own is made of."""

    registry: Registry[E]
    template: ModuleType
    called: str
    """The name that it bears itself, of its {name} in the settings, or that {dashed}."""
    about: str
    """The first line of a new file."""


POLICY: ExtensionKind[Policy[Any, Any]] = ExtensionKind(
    POLICIES,
    policy_template,
    "{name}",
    "The policy `{name}`: the tenants need what they used most lately, with a margin.",
)
PLUGIN: ExtensionKind[Plugin[Any, Any, Any]] = ExtensionKind(
    PLUGINS,
    plugin_template,
    "{dashed}-eviction-plugin",
    "The eviction plugin `{name}`: where little memory is available, the largest reclaimed pod goes.",
)


@dataclass(frozen=True, slots=True)
class FoundExtension(Generic[E]):
    """An extension, and the file of its code."""

    extension: E
    file: str


def find_extension(kind: ExtensionKind[E], named: str) -> FoundExtension[E]:
    """The extension of a file, or of this name among those that are installed.

    Raises:
        Refused: there is none, it cannot be imported, or it has not the parts that it must have.
    """
    registry = kind.registry
    if named.endswith(".py"):
        return FoundExtension(_of_file(registry, named), named)
    known = registry.known()
    outside = registry.outside(known)
    if named in known:
        return _installed(known[named])
    if named in outside:
        point = outside[named]
        return _installed(_with_functions(registry.load(point), registry.where(point)))
    raise Refused(
        f"{registry.noun} {named!r}: none is installed under this name; "
        f"{did_you_mean(named, sorted({*known, *outside}))}; a file ends in .py",
        reason=NO_SUCH_OBJECT,
    )


def _installed(extension: E) -> FoundExtension[E]:
    return FoundExtension(extension, inspect.getfile(extension.settings))


def _of_file(registry: Registry[E], file: str) -> E:
    module, text = given_module(file, registry.noun)
    name = registry.attribute
    if not hasattr(module, name):
        raise Refused(
            f"{registry.noun} file {file}: has no `{name} = {registry.kind.__name__}(...)`; "
            f"start one that has: sublet {registry.noun} new NAME",
            reason="file",
        )
    where = f"{registry.noun} {name} ({file}:{_line_of(name, text)})"
    return _with_functions(registry.checked(getattr(module, name), where), where)


def _line_of(name: str, text: str) -> int:
    """The line in which a module gives the name; 1 where it does so in another way."""
    for node in ast.parse(text).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.lineno
    return 1


def _with_functions(extension: E, where: str) -> E:
    """The extension, if its name is a text and all parts that it must have, beside the settings, can be called.

    Raises:
        Refused: names the part.
    """
    name: object = extension.name
    if not (isinstance(name, str) and name):
        raise Refused(f"{where}: its name is {name!r}; want a text", reason="shape")
    for part in fields(extension):
        value = getattr(extension, part.name)
        # What has a default is no function; what it may be, the extension's own class says.
        if part.name not in ("name", "settings") and part.default is MISSING and not callable(value):
            raise Refused(f"{where}: its {part.name} is {value!r}; want a function", reason="shape")
    return extension
