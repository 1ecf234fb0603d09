"""The registry of plug-ins: modules of a package, one plug-in each, and what other wheels register.

A wheel does so in its own pyproject.toml, without a change here:

    [project.entry-points."sublet.evictor.plugins"]
    mine = "my_package.my_module:PLUGIN"

Nothing of a wheel is imported before it is loaded by its name: to install one changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from shared.core.scan import modules_in
from shared.errors import Refused

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Registry(Generic[P]):
    """One kind of plug-in: the class of the plug-ins, their package, and the name that each module gives its own."""

    kind: type[P]
    package: ModuleType
    attribute: str
    group: str = ""
    """The entry point group; "" where wheels cannot register any."""
    settings: type[BaseModel] = BaseModel
    """The base of every plug-in's settings."""

    @property
    def noun(self) -> str:
        """Return what messages call one of them."""
        return self.kind.__name__.lower()

    @property
    def broken(self) -> str:
        """The reason of a plug-in that cannot be used."""
        return f"{self.noun}_broken"

    def known(self, package: ModuleType | None = None) -> dict[str, P]:
        """Every plug-in of the package, or of another one, by the name of its module, ascending."""
        return {name: getattr(module, self.attribute) for name, module in modules_in(package or self.package).items()}

    def outside(self, taken: Iterable[str]) -> dict[str, EntryPoint]:
        """Return the entry points of wheels by name, ascending, without names that ours already use."""
        found = sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value))
        return {point.name: point for point in found if point.name not in set(taken)}

    def load(self, point: EntryPoint) -> P:
        """Load the plug-in that an entry point names.

        Raises:
            Refused: `<noun>_broken`, it cannot be imported, or is no such plug-in; the message says which.
        """
        where = self.where(point)
        try:
            plugin: object = point.load()
        except Exception as error:  # an import runs whatever the wheel holds
            raise Refused(f"{where} cannot be loaded: {type(error).__name__}: {error}", reason=self.broken) from error
        return self.checked(plugin, where)

    def checked(self, plugin: object, where: str) -> P:
        """Return the object if it is such a plug-in.

        Raises:
            Refused: `<noun>_broken`, it is something else, or one of its parts is.
        """
        if not isinstance(plugin, self.kind):
            raise Refused(f"{where} is a {type(plugin).__name__}, not a {self.kind.__name__}", reason=self.broken)
        own: Any = getattr(plugin, "settings", None)
        if not (isinstance(own, type) and issubclass(own, self.settings)):
            raise Refused(f"{where}: its settings are no subclass of {self.settings.__name__}", reason=self.broken)
        return plugin

    def where(self, point: EntryPoint) -> str:
        """An entry point, as messages call it."""
        return f"{self.noun} {point.name!r} ({point.value})"
