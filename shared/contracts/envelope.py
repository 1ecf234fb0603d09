"""`Message` is what every message carries, and how one is encoded and decoded.

Readers ignore unknown fields (a newer writer never breaks an older reader); types and units never change within a
major version, which is part of the subject (docs/facts/nats.md#how-messages-may-change).
"""

from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from shared.contracts.ids import NodeName
from shared.core.cpus.cpuset import canonical_cpu_list
from shared.core.pydantic_words import first_fault
from shared.errors import Refused

MAX_MESSAGE_BYTES = 1_000_000  # nats-server refuses above 1 MiB by default; a full node of 250 pods needs 200 kB

CpuList = Annotated[str, AfterValidator(canonical_cpu_list)]
Count = Annotated[int, Field(ge=0)]
Bytes = Annotated[int, Field(ge=0)]
Millis = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MessagePart(BaseModel):
    """A piece of a message: frozen, unknown fields ignored on reading, no NaN and no infinity anywhere."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Reason(MessagePart):
    """Why a figure is what it is: the rule that fired and the numbers it used."""

    # An explanation may hold an infinity ("never yet"); it must not keep the decision from being published.
    model_config = ConfigDict(allow_inf_nan=True)

    rule: str
    numbers: dict[str, float | int | str | bool | None] = {}


class Message(MessagePart):
    """The envelope. `seq` ascends within one `boot_id` (one life of the sender)."""

    kind: ClassVar[str]

    v: Annotated[int, Field(ge=1, le=1)] = 1
    node: NodeName
    boot_id: Annotated[str, Field(pattern=r"^[0-9a-f]{8,32}$")]
    seq: Count
    sent_at: AwareDatetime
    config_rev: Count = 0
    based_on: tuple[str, ...] = ()
    """What this was computed from: "sample/812", "advice/77", newest last."""

    @property
    def ref(self) -> str:
        """How another message names this one in `based_on`."""
        return f"{self.kind}/{self.seq}"

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read a message.

        Raises:
            Refused: too large, not JSON, an unknown version, or a field out of bounds; the message names the field.
        """
        if len(payload) > MAX_MESSAGE_BYTES:
            raise Refused(
                f"{cls.__name__}: {len(payload)} bytes, at most {MAX_MESSAGE_BYTES} are read", reason="too_large"
            )
        try:
            return cls.model_validate_json(payload)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            reason = "unknown_version" if first["loc"] == ("v",) else "malformed"
            raise Refused(f"{cls.__name__}: {first_fault(error, whole='message')}", reason=reason) from error

    def encode(self) -> bytes:
        """The message as JSON, without fields that are null or empty by default."""
        return self.__pydantic_serializer__.to_json(self, exclude_none=True)
