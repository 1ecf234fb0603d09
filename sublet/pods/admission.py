"""The runtime asks qrm before a pod starts whether it can have the CPUs and memory nodes that it requests."""

import asyncio
from collections.abc import Callable, Sequence

from pydantic import ValidationError

from shared.contracts.admission import AdmissionAsked, AdmissionTold
from shared.contracts.bus.subjects import admit_subject
from shared.contracts.pod import Pod
from shared.core.pods.manifest import PodRecord
from shared.core.pods.qos import QOS_LEVEL
from shared.errors import Refused, Unavailable
from sublet.ask import ANSWER_TIMEOUT_S, connected, read_answer, target
from sublet.load.demand import LOAD, MEMORY_LOAD, STOP_AFTER

_NOT_OF_QRM = {QOS_LEVEL, LOAD, MEMORY_LOAD, STOP_AFTER}
"""Annotations that say nothing of where a pod wants to run."""


def admit(records: Sequence[PodRecord], note: Callable[[str], None]) -> None:
    """Ask for the pods that say where they want to run; the others are always placed.

    Where nobody answers the pods start all the same: qrm places them when it is back, and says what it could not do.

    Raises:
        Refused: a pod cannot have what it asks for; nothing is started.
    """
    pods = tuple(record.pod for record in records if _chooses(record.pod))
    if not pods:
        return
    try:
        told = asyncio.run(_ask(pods))
    except Unavailable as error:
        note(f"qrm was not asked whether there is room ({error}); the pods are placed when it is back")
        return
    for key, why in told.refused.items():
        raise Refused(f"{f'pod {key}' if key else 'admission'}: {why}", reason="not_admitted")


def _chooses(pod: Pod) -> bool:
    # Labels too: Koordinator's class is one, and qrm judges what it means.
    return pod.qos == "dedicated_cores" or bool(pod.annotations.keys() - _NOT_OF_QRM) or bool(pod.labels)


async def _ask(pods: tuple[Pod, ...]) -> AdmissionTold:
    where = target()
    async with connected(where) as bus:
        question = AdmissionAsked(pods=pods).model_dump_json().encode()
        answer = await bus.request(admit_subject(where.node), question, timeout_s=ANSWER_TIMEOUT_S)
    return _read(answer)


def _read(answer: bytes) -> AdmissionTold:
    """What qrm says, as far as it can be shown.

    Raises:
        Unavailable: it is no answer to this question, or too large for one.
    """
    told = read_answer(answer)
    try:
        return AdmissionTold.model_validate(told)
    except ValidationError as error:
        raise Unavailable("its answer cannot be read", reason="answer") from error
