"""Settings of disks: the kernel's write-back throttling and io.cost, by class of disk."""

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
    """The quality of service that io.cost maintains on a disk (`io.cost.qos`)."""

    enable: bool = True
    """Switches io.cost on for this class of disks; false switches it off, whoever switched it on."""
    read_percentile: Percentile = 95.0
    """Percentile of reads to which the latency below applies, in percent; 0: reads do not count."""
    read_latency_us: Latency = 25_000
    """Read latency above which the disk counts as saturated."""
    write_percentile: Percentile = 95.0
    """Percentile of writes to which the latency below applies, in percent; 0: writes do not count."""
    write_latency_us: Latency = 25_000
    """Write latency above which the disk counts as saturated."""
    min_percent: Speed = 50.0
    """Lowest speed to which all work may be slowed down, in percent of the model."""
    max_percent: Speed = 150.0
    """Highest speed to which all work may be sped up, in percent of the model."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_percent > self.max_percent:
            raise ValueError(f"want min_percent ({self.min_percent}) at most max_percent ({self.max_percent})")
        return self

    def rule(self) -> CostQos:
        """Return the rule as the core takes it."""
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
    """Measured capacity of a disk (`io.cost.model`)."""

    read_bps: Rate
    """Bytes per second that the disk reads."""
    read_sequential_iops: Rate
    """Sequential reads per second."""
    read_random_iops: Rate
    """Random reads per second."""
    write_bps: Rate
    """Bytes per second that the disk writes."""
    write_sequential_iops: Rate
    """Sequential writes per second."""
    write_random_iops: Rate
    """Random writes per second."""

    def rule(self) -> CostModel:
        """Return the model as the core takes it."""
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
    """Settings of one class of disks."""

    wbt_us: Annotated[int, Field(ge=LEAVE_WBT, le=60_000_000)] | None = None
    """Latency target of write-back throttling; 0: off, -1: unchanged. Not set: 75000 for rotating and virtual disks,
    2000 for others."""
    qos: IoCostQosSettings | None = None
    """Quality of service that io.cost maintains; not set: nothing is written."""
    model: Literal["auto"] | IoCostModelSettings | None = None
    """Capacity of the disk: measured figures, or `auto` for the kernel's own; not set: nothing is written."""

    def rule(self) -> DiskClassRules:
        """Return the rules as the core takes them."""
        qos = None if self.qos is None else self.qos.rule()
        model = CostModel() if self.model == "auto" else None if self.model is None else self.model.rule()
        return DiskClassRules(self.wbt_us, qos, model)


class DisksSettings(Settings):
    """Write-back throttling and io.cost of whole disks, as in Katalyst; `services.qrm.core.devices.disk_lines`."""

    wbt: bool = False
    """Sets write-back throttling (`queue/wbt_lat_usec` of each disk)."""
    io_cost: bool = False
    """Sets io.cost (cgroup v2), for the classes below that configure it."""
    check_wbt: bool = True
    """Enables io.cost only while write-back throttling is off, because both together slow down the same writers."""
    hdd: DiskClassSettings = DiskClassSettings()
    """Rotating disks."""
    ssd: DiskClassSettings = DiskClassSettings()
    """Solid state disks."""
    nvme: DiskClassSettings = DiskClassSettings()
    """NVMe."""
    virtio: DiskClassSettings = DiskClassSettings()
    """Disks of a virtual machine (vda)."""

    def rules(self) -> DiskRules:
        """Return the rules as the core takes them."""
        classes = {"hdd": self.hdd, "ssd": self.ssd, "nvme": self.nvme, "virtio": self.virtio}
        said = {kind: one.rule() for kind, one in classes.items()}
        return DiskRules(self.wbt, self.io_cost, self.check_wbt, said)
