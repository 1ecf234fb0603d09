"""A list of advisories about the packages that are pinned here, and which of them a version is subject to. Pure.

The list is a part of the PyPA's advisory database, by its date: what was published later is not in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version
from pydantic import BaseModel, ConfigDict


class Range(BaseModel):
    """Versions from `introduced` on, before `fixed`, or up to `last`; with neither all that follow."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    introduced: str
    fixed: str | None = None
    last: str | None = None

    def holds(self, version: str) -> bool:
        """Whether a version is one of them."""
        asked = Version(version)
        if self.introduced != "0" and asked < Version(self.introduced):
            return False
        if self.fixed is not None:
            return asked < Version(self.fixed)
        return self.last is None or asked <= Version(self.last)


class Advisory(BaseModel):
    """One advisory about one package."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    aliases: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    versions: tuple[str, ...] = ()
    """Affected ones by name, where the database gives no range."""

    def affects(self, version: str) -> bool:
        """Whether a version is subject to it."""
        return version in self.versions or any(one.holds(version) for one in self.ranges)


class Kept(BaseModel):
    """The list that is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: str
    license: str
    revision: str
    until: date
    packages: Mapping[str, tuple[Advisory, ...]]
    """By the package's name; one without an advisory was looked up as well."""

    def found(self, pinned: Mapping[str, str]) -> list[str]:
        """A line for each advisory that a pinned version is subject to."""
        return [
            f"{name} {version}: {' '.join((one.id, *one.aliases))}"
            for name, version in sorted(pinned.items())
            for one in self.packages.get(name, ())
            if one.affects(version)
        ]

    def unknown(self, pinned: Iterable[str]) -> list[str]:
        """Packages that were not looked up when the list was made."""
        return sorted(set(pinned) - set(self.packages))


def of_documents(documents: Iterable[Mapping[str, Any]], names: Iterable[str]) -> dict[str, tuple[Advisory, ...]]:
    """What documents of the database (OSV) say about packages."""
    found: dict[str, list[Advisory]] = {name: [] for name in sorted(names)}
    for document in documents:
        if document.get("withdrawn"):
            continue
        for affected in document.get("affected") or ():
            name = canonicalize_name(affected["package"]["name"])
            if name in found and affected["package"]["ecosystem"] == "PyPI":
                ranges = tuple(_ranges(affected))
                versions = () if ranges else tuple(map(str, affected.get("versions") or ()))
                aliases = tuple(document.get("aliases") or ())
                found[name].append(Advisory(id=document["id"], aliases=aliases, ranges=ranges, versions=versions))
    return {name: tuple(sorted(listed, key=lambda one: one.id)) for name, listed in found.items()}


def _ranges(affected: Mapping[str, Any]) -> Iterator[Range]:
    """The database tells events in order: a version that brings it in, and one that ends it."""
    for one in affected.get("ranges") or ():
        if one["type"] != "ECOSYSTEM":
            continue
        introduced: str | None = None
        for event in one["events"]:
            if "introduced" in event:
                introduced = str(event["introduced"])
            elif introduced is not None and ("fixed" in event or "last_affected" in event):
                yield Range(introduced=introduced, fixed=event.get("fixed"), last=event.get("last_affected"))
                introduced = None
        if introduced is not None:
            yield Range(introduced=introduced)
