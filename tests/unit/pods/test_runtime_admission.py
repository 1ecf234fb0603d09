"""The runtime asks before it starts a pod that chooses its place, and only then."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.contracts.admission import AdmissionAsked, AdmissionTold
from shared.contracts.bus.subjects import admit_subject
from shared.contracts.pod import Pod
from shared.core.pods.manifest import PodRecord
from shared.core.pods.qos import QOS_LEVEL
from shared.errors import Refused, Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Bus
from sublet.ask import AskTarget
from sublet.pods import admission

CLASS = {QOS_LEVEL: "shared_cores"}
Answer = Callable[[AdmissionAsked], AdmissionTold]


def record(name: str, qos: str = "dedicated_cores", **fields: object) -> PodRecord:
    return PodRecord(pod=Pod(uid=name, name=name, qos=qos, **fields))


@pytest.fixture
def qrm(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer | None], list[str]]:
    """Put a qrm on the bus that answers so, or none; gives the names it was asked for."""
    heard: list[str] = []

    def put(answer: Answer | None) -> list[str]:
        def reply(question: bytes) -> bytes:
            asked = AdmissionAsked.model_validate_json(question)
            heard.extend(pod.name for pod in asked.pods)
            assert answer is not None
            return answer(asked).model_dump_json().encode()

        @contextlib.asynccontextmanager
        async def connected(_where: AskTarget) -> AsyncIterator[Bus]:
            bus = MemoryBus()
            if answer is not None:
                await bus.serve(admit_subject("n"), reply)
            yield bus

        monkeypatch.setattr(admission, "connected", connected)
        monkeypatch.setattr(admission, "target", lambda: AskTarget("n", "nats://nowhere"))
        return heard

    return put


def fail(note: str) -> None:
    raise AssertionError(note)


def test_a_pod_that_is_told_no_is_not_started_and_the_reason_is_passed_on(qrm: Callable[..., Any]) -> None:
    qrm(lambda _asked: AdmissionTold(refused={"default/b": "25 CPUs wanted, 24 free"}))
    with pytest.raises(Refused, match="pod default/b: 25 CPUs wanted"):
        admission.admit([record("a"), record("b")], fail)


def test_pods_that_may_run_are_asked_for_together(qrm: Callable[..., Any]) -> None:
    heard = qrm(lambda _asked: AdmissionTold())
    admission.admit([record("a"), record("b")], fail)
    assert heard == ["a", "b"]


def test_only_pods_that_choose_their_place_are_asked_for(qrm: Callable[..., Any]) -> None:
    heard = qrm(lambda _asked: AdmissionTold())
    bound = {**CLASS, "katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}'}
    plain = [record("a", "shared_cores", annotations=CLASS), record("b", "reclaimed_cores")]
    admission.admit(plain, fail)
    assert heard == []
    admission.admit([*plain, record("c", "shared_cores", annotations=bound)], fail)
    assert heard == ["c"]


def test_where_nobody_answers_the_pod_starts_and_the_user_is_told(qrm: Callable[..., Any]) -> None:
    qrm(None)
    notes: list[str] = []
    admission.admit([record("a")], notes.append)
    assert "placed when it is back" in notes[0]


def test_where_the_bus_is_away_the_pod_starts_too(qrm: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.asynccontextmanager
    async def away(_where: AskTarget) -> AsyncIterator[Bus]:
        raise Unavailable("no NATS server")
        yield  # type: ignore[unreachable] # it makes this a generator

    monkeypatch.setattr(admission, "connected", away)
    monkeypatch.setattr(admission, "target", lambda: AskTarget("n", "nats://nowhere"))
    notes: list[str] = []
    admission.admit([record("a")], notes.append)
    assert "no NATS server" in notes[0]
