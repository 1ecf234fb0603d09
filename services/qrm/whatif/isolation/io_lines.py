"""Ask what is written for one disk: the what-if kind `io_lines`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.qrm.core.devices.disk_lines import (
    LEAVE_WBT,
    Control,
    CostModel,
    CostQos,
    Disk,
    DiskClassRules,
    DiskRules,
    Skipped,
    disk_lines,
)
from shared.whatif.decisions import Answer, Question, decision

DeviceNumber = Annotated[str, Field(pattern=r"^[0-9]{1,4}:[0-9]{1,7}$")]
Figure = Annotated[int, Field(ge=0, lt=1 << 63)]
Part = Annotated[float, Field(ge=0, le=1e9)]
Microseconds = Annotated[int, Field(ge=LEAVE_WBT, lt=1 << 63)]


class DiskAsked(Question):
    """A disk; `wbt_us` null: it is not known."""

    id: DeviceNumber
    class_: Annotated[str, Field(alias="class", min_length=1, max_length=63)]
    wbt_us: Figure | None = None


class QosAsked(Question):
    """A QoS of io.cost; the figures may be omitted if it is off."""

    enable: Literal[0, 1] = 1
    ctrl: Control = "auto"
    rpct: Part | None = None
    rlat_us: Figure | None = None
    wpct: Part | None = None
    wlat_us: Figure | None = None
    min: Part | None = None
    max: Part | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        missing = [name for name, value in self._figures().items() if value is None]
        if self.enable and missing:
            raise ValueError(f"{missing[0]}: needed unless enable is 0")
        return self

    def _figures(self) -> dict[str, float | None]:
        return self.model_dump(exclude={"enable", "ctrl"})

    def rule(self) -> CostQos:
        """As the core takes it."""
        return CostQos(
            bool(self.enable),
            self.ctrl,
            self.rpct or 0.0,
            self.rlat_us or 0,
            self.wpct or 0.0,
            self.wlat_us or 0,
            self.min or 0.0,
            self.max or 0.0,
        )


class ModelAsked(Question):
    """A model of io.cost; the figures may be omitted if it is the kernel's own."""

    ctrl: Control = "auto"
    rbps: Figure | None = None
    rseqiops: Figure | None = None
    rrandiops: Figure | None = None
    wbps: Figure | None = None
    wseqiops: Figure | None = None
    wrandiops: Figure | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        missing = [name for name, value in self.model_dump(exclude={"ctrl"}).items() if value is None]
        if self.ctrl == "user" and missing:
            raise ValueError(f"{missing[0]}: needed with ctrl user")
        return self

    def rule(self) -> CostModel:
        """As the core takes it."""
        return CostModel(self.ctrl, **{name: value or 0 for name, value in self.model_dump(exclude={"ctrl"}).items()})


class ClassAsked(Question):
    """The settings of one class of disks."""

    wbt_us: Microseconds | None = None
    qos: QosAsked | None = None
    model: ModelAsked | None = None

    def rule(self) -> DiskClassRules:
        """As the core takes them."""
        qos = None if self.qos is None else self.qos.rule()
        return DiskClassRules(self.wbt_us, qos, None if self.model is None else self.model.rule())


class IoLinesQuestion(Question):
    """A disk and what the settings say."""

    device: DiskAsked
    wbt: bool = False
    iocost: bool = False
    cgroup_v2: bool = True
    check_wbt: bool = True
    settings: dict[str, ClassAsked] = {}


class IoLinesAnswer(Answer):
    """What is written; null: nothing."""

    wbt_us: int | None
    qos_line: str | None
    model_line: str | None
    skipped: Skipped | None


@decision("io_lines", area="isolation", asks=IoLinesQuestion, answers=IoLinesAnswer)
def io_lines(question: IoLinesQuestion) -> IoLinesAnswer:
    """Return what to write for one disk: its write-back throttling, and the lines of io.cost."""
    classes = {kind: one.rule() for kind, one in question.settings.items()}
    rules = DiskRules(question.wbt, question.iocost, question.check_wbt, classes)
    disk = Disk(question.device.id, question.device.class_, question.device.wbt_us)
    told = disk_lines(disk, rules, cgroup_v2=question.cgroup_v2)
    return IoLinesAnswer(wbt_us=told.wbt_us, qos_line=told.qos_line, model_line=told.model_line, skipped=told.skipped)
