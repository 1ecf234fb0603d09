"""The settings of disks say how the kernel's write-back throttling and io.cost are set, by class of disk."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.qrm.core.devices.disk_lines import (
    LEAVE_WBT,
    CostModel,
    CostQos,
    DiskClassRules,
    DiskRules,
)
from shared.settings import Settings

Percentile = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Latency = Annotated[int, Field(ge=1, le=60_000_000)]
Speed = Annotated[float, Field(ge=1, le=10_000, allow_inf_nan=False)]
Rate = Annotated[int, Field(ge=1, lt=1 << 53)]


class IoCostQosSettings(Settings):
    """What io.cost shall keep on a disk (`io.cost.qos`)."""

    enable: bool = True
    """Whether it is on for this class of disks; false switches off what somebody else switched on."""
    read_percentile: Percentile = 95.0
    """Which reads the latency below is meant for, in percent; 0: reads do not count."""
    read_latency_us: Latency = 25_000
    """Latency from which on the disk counts as too busy."""
    write_percentile: Percentile = 95.0
    """Which writes the latency below is meant for, in percent; 0: writes do not count."""
    write_latency_us: Latency = 25_000
    """Latency from which on the disk counts as too busy."""
    min_percent: Speed = 50.0
    """How far all work may be slowed down for it, in percent of what the model says."""
    max_percent: Speed = 150.0
    """How far it may be sped up beyond the model, in percent."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_percent > self.max_percent:
            raise ValueError(f"want min_percent ({self.min_percent}) at most max_percent ({self.max_percent})")
        return self

    def rule(self) -> CostQos:
        """As the core takes it."""
        return CostQos(
            self.enable,
            "user",
            self.read_percentile,
            self.read_latency_us,
            self.write_percentile,
            self.write_latency_us,
            self.min_percent,
            self.max_percent,
        )


class IoCostModelSettings(Settings):
    """What a disk can do, as measured (`io.cost.model`)."""

    read_bps: Rate
    """Bytes by second that it reads."""
    read_sequential_iops: Rate
    """Reads by second, one behind the other."""
    read_random_iops: Rate
    """Reads by second, anywhere."""
    write_bps: Rate
    """Bytes by second that it writes."""
    write_sequential_iops: Rate
    """Writes by second, one behind the other."""
    write_random_iops: Rate
    """Writes by second, anywhere."""

    def rule(self) -> CostModel:
        """As the core takes it."""
        return CostModel(
            "user",
            self.read_bps,
            self.read_sequential_iops,
            self.read_random_iops,
            self.write_bps,
            self.write_sequential_iops,
            self.write_random_iops,
        )


class DiskClassSettings(Settings):
    """What one class of disks is set to."""

    wbt_us: Annotated[int, Field(ge=LEAVE_WBT, le=60_000_000)] | None = None
    """Latency that write-back throttling keeps; 0: it is off, -1: it is left as it is. Not said: 75000 for disks that
    rotate and virtual ones, 2000 for others."""
    qos: IoCostQosSettings | None = None
    """What io.cost shall keep; not said: nothing is written."""
    model: Literal["auto"] | IoCostModelSettings | None = None
    """What the disk can do: measured figures, or `auto` for the kernel's own; not said: nothing is written."""

    def rule(self) -> DiskClassRules:
        """As the core takes it."""
        qos = None if self.qos is None else self.qos.rule()
        model = CostModel() if self.model == "auto" else None if self.model is None else self.model.rule()
        return DiskClassRules(self.wbt_us, qos, model)


class DisksSettings(Settings):
    """Write-back throttling and io.cost of whole disks, as Katalyst has it; `services.qrm.core.devices.disk_lines`."""

    wbt: bool = False
    """Whether write-back throttling is set (`queue/wbt_lat_usec` of each disk)."""
    io_cost: bool = False
    """Whether io.cost is set (cgroup v2), for the classes below that say something of it."""
    check_wbt: bool = True
    """Whether io.cost waits until write-back throttling is off: together they slow down the same writers."""
    hdd: DiskClassSettings = DiskClassSettings()
    """Disks that rotate."""
    ssd: DiskClassSettings = DiskClassSettings()
    """Disks that do not."""
    nvme: DiskClassSettings = DiskClassSettings()
    """NVMe."""
    virtio: DiskClassSettings = DiskClassSettings()
    """Disks of a virtual machine (vda)."""

    def rules(self) -> DiskRules:
        """As the core takes them."""
        classes = {"hdd": self.hdd, "ssd": self.ssd, "nvme": self.nvme, "virtio": self.virtio}
        said = {kind: one.rule() for kind, one in classes.items()}
        return DiskRules(self.wbt, self.io_cost, self.check_wbt, said)
