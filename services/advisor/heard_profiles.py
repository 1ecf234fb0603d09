"""`HeardProfiles` keeps the service profiles that central publishes for this node's pods, until they expire."""

from collections.abc import Collection, Mapping
from typing import Any

from services.advisor.core.model.profile import PodProfile
from services.advisor.core.observation.profiles import NO_PROFILES, profiles_in
from services.advisor.settings import HeardProfileSettings
from shared.contracts.cluster.profiles import ServiceProfiles
from shared.wire import Newest, Wire


class HeardProfiles:
    """Subscribes once the settings enable it. A profile that was never received, or has expired, counts as none."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._told: Newest[ServiceProfiles] | None = None
        self._read: tuple[ServiceProfiles, Mapping[str, PodProfile]] | None = None

    async def listen(self, settings: HeardProfileSettings) -> None:
        """Subscribe to central's profiles, if enabled and not done yet."""
        if settings.enabled and self._told is None:
            self._told = await self._wire.newest(ServiceProfiles)

    def profiles(self, settings: HeardProfileSettings) -> Mapping[str, PodProfile]:
        """The profiles in force, by the pod's UID."""
        told = self._told.within(settings.max_age_s) if self._told and settings.enabled else None
        return NO_PROFILES if told is None else self._profiles(told)

    def stale(self, settings: HeardProfileSettings, uids: Collection[str]) -> str:
        """Why profiles of pods that are here are not in force any more, as a condition; "" where they are."""
        if not settings.enabled or self._told is None or self._told.value is None:
            return ""
        age_s = self._told.age_s or 0.0
        if age_s <= settings.max_age_s:
            return ""
        here = len(self._profiles(self._told.value).keys() & set(uids))
        if not here:
            return ""
        return (
            f"ServiceProfilesStale: central told of the services of {here} pods {age_s:.0f} s ago, "
            f"service_profiles.max_age_s is {settings.max_age_s:g}; the node's own settings hold for them"
        )

    def state(self, settings: HeardProfileSettings, uids: Collection[str]) -> Mapping[str, Any] | None:
        """Return the profiles in force for these pods; None if profiles are off."""
        if not settings.enabled:
            return None
        told = self._told.value if self._told else None
        services = () if told is None else told.services
        return {
            "age_s": self._told.age_s if self._told else None,
            "in_force": bool(self.profiles(settings)),
            "stale": self.stale(settings, uids),
            "services": [one.model_dump(mode="json", exclude_none=True) for one in services],
        }

    def _profiles(self, told: ServiceProfiles) -> Mapping[str, PodProfile]:
        if self._read is None or self._read[0] is not told:
            self._read = told, profiles_in(told)
        return self._read[1]
