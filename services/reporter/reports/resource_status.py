"""Write the CPUs of LSE and LSR pods into their annotations, once for each change."""

from collections.abc import Sequence

import structlog

from services.reporter.core.resource_status import StatusToWrite
from shared.contracts.allocation import Condition
from shared.core.api_kind import PODS
from shared.core.pods.cpu_binding import RESOURCE_STATUS
from shared.errors import Conflict, Refused, Unavailable
from shared.ports import Objects

log = structlog.get_logger()

MANAGER = "sublet-resource-status"
"""The field manager of the annotation; whoever wrote it before gives it up with the first text that is another."""
AGAIN_S = 60.0
"""A text that was sent and does not show is sent again after so long: it was refused, or somebody has changed it."""
MOST = 16
"""Pods that are written in one tick; the others follow in the next."""
NO_API_SERVER = "there is no API server here; leave reporter.resource_status out"
FORBIDDEN = "Forbidden"
GRANT = "settings.reporter.resource_status of the chart grants it"


class ResourceStatusReport:
    """Remembers what it sent: a pod's new annotation shows in the samples some seconds later."""

    def __init__(self, objects: Objects | None) -> None:
        self._objects = objects
        self._sent: dict[str, tuple[str, float]] = {}
        self._refused: dict[str, str] = {}
        self._failure = ""

    def conditions(self) -> tuple[Condition, ...]:
        """Why pods do not say their CPUs; nothing where they do."""
        why = self._failure or next(iter(self._refused.values()), "")
        return (Condition(type="ResourceStatusNotWritten", message=why),) if why else ()

    def stop(self) -> None:
        """Forget everything: nothing is to be written."""
        self._sent, self._refused, self._failure = {}, {}, ""

    async def write(self, wanted: Sequence[StatusToWrite], now_s: float) -> None:
        """Write what is not written yet."""
        if self._objects is None:
            self._failure = NO_API_SERVER
            return
        known = {one.uid for one in wanted}
        self._sent = {uid: kept for uid, kept in self._sent.items() if uid in known}
        self._refused = {uid: why for uid, why in self._refused.items() if uid in known}
        try:
            for one in [one for one in wanted if self._is_due(one, now_s)][:MOST]:
                await self._write(self._objects, one)
                self._sent[one.uid] = (one.text, now_s)
        except Unavailable as error:
            self._failure = str(error)
        else:
            self._failure = ""

    async def _write(self, objects: Objects, one: StatusToWrite) -> None:
        # A UID in a patch is a condition: another pod of that name has other CPUs.
        meta = {"name": one.name, "namespace": one.namespace, "uid": one.uid}
        try:
            there = await objects.patch(PODS, {"metadata": {**meta, "annotations": {RESOURCE_STATUS: one.text}}})
        # A conflict is the answer to a UID that another pod of the name does not have.
        except (Refused, Conflict) as refusal:
            if one.uid not in self._refused:
                log.warning("pod.cpus_not_written", pod=f"{one.namespace}/{one.name}", why=str(refusal))
            grant = f"; {GRANT}" if refusal.reason == FORBIDDEN else ""
            self._refused[one.uid] = f"pod {one.namespace}/{one.name}: {refusal}{grant}"
        else:
            self._refused.pop(one.uid, None)
            if there is not None:
                log.info("pod.cpus_written", pod=f"{one.namespace}/{one.name}", status=one.text)

    def _is_due(self, one: StatusToWrite, now_s: float) -> bool:
        text, at_s = self._sent.get(one.uid, ("", 0.0))
        return text != one.text or (one.shows and now_s - at_s >= AGAIN_S)
