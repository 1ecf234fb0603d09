"""EvictionIntent (written before anything is done) and EvictionEvent (the fact, for everybody who subscribes)."""

from typing import Annotated, ClassVar

from pydantic import Field

from shared.contracts.envelope import Count, Message, Reason
from shared.contracts.eviction_phases import Phase
from shared.contracts.ids import ObjectName, PodUid
from shared.contracts.mode import Mode
from shared.contracts.pod import QosClass


class EvictionFacts(Message):
    """What intent and event have in common: whom, by which rule, on which numbers."""

    intent_id: Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$")]
    namespace: ObjectName
    pod: ObjectName
    pod_uid: PodUid
    qos: QosClass
    plugin: str
    scope: str
    observed: float | None = None
    threshold: float | None = None
    grace_s: Annotated[float, Field(ge=0, le=3600)] = 30.0
    mode: Mode = "enforce"


class EvictionIntent(EvictionFacts):
    """Written ahead of the action. Not executed once `deadline_s` has passed since it was opened."""

    kind: ClassVar[str] = "intent"

    episode: Count
    epoch: Count = 0
    """Leadership number of the writer, from 1 on; 0 for the node itself. Central stores none behind a higher one."""
    deadline_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    why: tuple[Reason, ...] = ()


class EvictionEvent(EvictionFacts):
    """One step of an eviction. At least once, recognisable by `event_id`, in order of `attempt` for one pod."""

    kind: ClassVar[str] = "event"

    phase: Phase
    attempt: Count = 1
    message: str = ""
    """The text of the Kubernetes event, as the tutorial prints it."""
    detail: str = ""

    @property
    def event_id(self) -> str:
        """CloudEvents id and NATS message id: everything that makes this fact another one."""
        return f"{self.intent_id}/{self.phase}/{self.attempt}"
