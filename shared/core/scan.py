"""Find variants (policies, plugins, sources, fields) by scanning a package: one file each, no list to edit."""

import importlib
import pkgutil
from types import ModuleType


def modules_in(package: ModuleType) -> dict[str, ModuleType]:
    """Import every module of a package; the result maps the module's short name, ascending, to the module.

    Names that start with an underscore are left out: they are parts of others.
    """
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}
