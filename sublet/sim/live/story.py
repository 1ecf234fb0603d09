"""Plays a scenario on a host in real time: each step once, when it is due, also across restarts of the process."""

import hashlib
from collections.abc import Mapping
from typing import Any

import structlog

from shared.core.pods.manifest import read_pod
from shared.errors import Conflict, SubletError
from sublet.sim.host import SimHost
from sublet.sim.progress import SimProgress
from sublet.sim.scenario import Scenario, Step

ANY_UID = "0"
log = structlog.get_logger()


class Story:
    """The steps of a scenario; how many of them are done stands in the host's progress."""

    def __init__(self, scenario: Scenario) -> None:
        self._steps, self._again_at_s = scenario.steps, scenario.again_at_s
        self._digest = hashlib.sha256(scenario.model_dump_json(include={"steps", "again_at_s"}).encode()).hexdigest()

    def take_up(self, host: SimHost) -> None:
        """Go on where an earlier life of the host was in this scenario; another scenario begins anew."""
        if host.progress.scenario != self._digest:
            host.progress = SimProgress(scenario=self._digest)

    def perform_due(self, host: SimHost) -> None:
        """Perform the steps whose time has come; one that fails is said and left out."""
        while self._next_at_s(host.progress.steps) <= host.progress.time_s:
            step = self._steps[host.progress.steps % len(self._steps)]
            if not _perform(host, step):
                return
            host.progress = host.progress.model_copy(update={"steps": host.progress.steps + 1})

    def _next_at_s(self, done: int) -> float:
        """When the step after so many is due; never, after the last of a scenario that is played once."""
        begun, index = divmod(done, len(self._steps))
        if begun and self._again_at_s is None:
            return float("inf")
        return begun * (self._again_at_s or 0.0) + self._steps[index].at_s


def _perform(host: SimHost, step: Step) -> bool:
    """Do what a step says; False where a pod that it names is not ready for it yet: then it is tried again."""
    if step.exec is not None and _is_starting(host, step.exec.pod):
        return False
    for manifest in step.apply or ():
        try:
            host.apply_pod(manifest)
        except Conflict:
            # Either this very step has started it, before the process was killed; or one of that name is still ending.
            if _is_ending(host, manifest):
                return False
        except SubletError as error:
            _say_failed(step, error)
    try:
        host.perform(step.model_copy(update={"apply": None}))
    except SubletError as error:
        _say_failed(step, error)
    if step.say:
        log.info("step.done", say=step.say)
    return True


def _say_failed(step: Step, error: SubletError) -> None:
    log.error("step.failed", at_s=step.at_s, why=str(error))


def _is_starting(host: SimHost, key: str) -> bool:
    """Whether a pod is in the store and will run, and does not yet."""
    waiting = [one for one in host.pods.stored() if one.record.pod.key == key and not one.status.finished]
    return key not in host.running() and any(not one.status.terminating for one in waiting)


def _is_ending(host: SimHost, manifest: Mapping[str, Any]) -> bool:
    """Whether the pod that holds a manifest's name has been asked to end."""
    key = read_pod(manifest, ANY_UID).record.pod.key
    return any(one.status.terminating for one in host.pods.stored() if one.record.pod.key == key)
