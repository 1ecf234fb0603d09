"""Finds the models of settings, and where each one belongs.

They are found as the services find them: a service's section has one in its `settings.py`; policies, plugins and report
fields come from their folders.
"""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

import services
from services.advisor.registry import known_policies
from services.evictor.registry import known_plugins
from services.reporter.registry import known_fields
from shared.contracts.services import SERVICES
from shared.settings import CommonSettings, inner_model
from sublet.settings_page.sentences import summary


@dataclass(frozen=True, slots=True)
class Section:
    """The keys of one model at one place; `values` holds the defaults, where the model around it gives others."""

    path: tuple[str, ...]
    model: type[BaseModel]
    about: str
    values: BaseModel | None = None

    @property
    def title(self) -> str:
        """As the heading says it."""
        return ".".join(self.path) or "All services"


def sections() -> Iterator[Section]:
    """The common keys, then each service's with all that lies below it."""
    yield from _with_inner(Section((), CommonSettings, summary(CommonSettings)))
    for name in SERVICES:
        model = getattr(importlib.import_module(f"{services.__name__}.{name}.settings"), f"{name.capitalize()}Settings")
        yield from _with_inner(Section((name,), model, summary(model)))
        for variant in _variants(name):
            yield from _with_inner(variant)


def _variants(service: str) -> Iterator[Section]:
    """What the folder of a service's policies, plugins or report fields holds."""
    if service == "advisor":
        for name, policy in known_policies().items():
            about = summary(sys.modules[policy.settings.__module__])
            yield Section((service, "policies", name), policy.settings, about)
    if service == "evictor":
        for name, plugin in known_plugins().items():
            about = f"{summary(sys.modules[plugin.settings.__module__])} In events it is called `{plugin.name}`."
            yield Section((service, "plugins", name), plugin.settings, about)
    if service == "reporter":
        for name, field in known_fields().items():
            if field.settings.model_fields:
                about = summary(sys.modules[field.settings.__module__])
                yield Section((service, "fields", name), field.settings, about)


def _with_inner(section: Section) -> Iterator[Section]:
    yield section
    for name, field in section.model.model_fields.items():
        model = inner_model(field)
        if model is not None:
            default = field.default if section.values is None else getattr(section.values, name)
            values = default if isinstance(default, BaseModel) else None
            yield from _with_inner(Section((*section.path, name), model, summary(model), values))
