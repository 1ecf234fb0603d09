"""`profiled` attaches the profiles that central publishes to the containers of a view."""

from collections.abc import Mapping
from dataclasses import replace

from services.advisor.core.model.containers import Containers
from services.advisor.core.model.profile import PodProfile
from services.advisor.core.model.view import View
from shared.contracts.cluster.profiles import ServiceProfiles

NO_PROFILES: Mapping[str, PodProfile] = {}


def profiles_in(told: ServiceProfiles) -> dict[str, PodProfile]:
    """By UID the profile of each pod. Of one that two services name the first counts."""
    found: dict[str, PodProfile] = {}
    for service in told.services:
        kept_for = {uid: why for why, uids in sorted(service.kept.items()) for uid in uids}
        for uid in (*service.pods, *kept_for):
            profile = PodProfile(f"{service.namespace}/{service.name}", service.targets, kept_for.get(uid, ""))
            found.setdefault(uid, profile)
    return found


def profiled(view: View, profiles: Mapping[str, PodProfile]) -> View:
    """Return the view with each container's profile; reclaimed pods have none, whatever was published."""
    if not any(container.uid in profiles for container in view.containers):
        return view
    containers = [
        replace(container, profile=profile)
        if (profile := profiles.get(container.uid)) is not None and container.qos != "reclaimed_cores"
        else container
        for container in view.containers
    ]
    return replace(view, containers=Containers(containers))
