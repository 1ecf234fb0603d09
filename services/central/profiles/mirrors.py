"""Mirrors of what profiles need, by name."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from services.central.core.profiles.cluster_objects import (
    NAMESPACES,
    PRIORITY_CLASSES,
    namespace_of,
    priority_class_of,
)
from services.central.core.profiles.profile import PriorityClassValue, Profile
from services.central.core.profiles.profile_documents import PROFILES, ProfileSeen, profile_of
from shared.errors import Unavailable
from shared.ports import ObjectMirror, Objects


class ProfileMirrors:
    """Orders their content once per change, not once per pod; before the first list nothing is known."""

    def __init__(self, objects: Objects, changed: asyncio.Event, *, applied: bool = True) -> None:
        """`applied`: whether profiles are applied; otherwise none of this is read, and there is no profile."""
        self._event, self._applied = changed, applied
        self._profiles = objects.mirror(PROFILES, profile_of, self._change)
        self._namespaces = objects.mirror(NAMESPACES, namespace_of, self._change)
        self._classes = objects.mirror(PRIORITY_CLASSES, priority_class_of, self._change)
        self._stale = applied
        self._readable: Sequence[Profile] = ()
        self._by_name: Mapping[str, Mapping[str, str]] = {}
        self._values: Mapping[str, PriorityClassValue] = {}

    @property
    def every(self) -> list[ObjectMirror[Any]]:
        """All of them, to be run."""
        return [self._profiles, self._namespaces, self._classes] if self._applied else []

    @property
    def failure(self) -> str:
        """Why one of them was never listed; "" once all are."""
        try:
            for mirror in self.every:
                _ = mirror.objects
        except Unavailable as error:
            return str(error)
        return ""

    @property
    def seen(self) -> Sequence[ProfileSeen]:
        """Every profile, readable or not, by name ascending.

        Raises:
            Unavailable: they were never listed.
        """
        return sorted(self._profiles.objects.values(), key=lambda one: one.name) if self._applied else ()

    @property
    def readable(self) -> Sequence[Profile]:
        """The profiles that work."""
        self._refresh()
        return self._readable

    @property
    def priority_classes(self) -> Mapping[str, PriorityClassValue]:
        """Values by name."""
        self._refresh()
        return self._values

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace; None if it is unknown."""
        self._refresh()
        return self._by_name.get(name)

    def _change(self) -> None:
        self._stale = True
        self._event.set()

    def _refresh(self) -> None:
        if not self._stale or self.failure:
            return
        self._stale = False
        self._readable = [one.profile for one in self.seen if one.profile is not None]
        self._by_name = {one.name: one.labels for one in self._namespaces.objects.values()}
        self._values = {one.name: one.gives for one in self._classes.objects.values()}
