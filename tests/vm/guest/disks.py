"""Write-back throttling and io.cost on a real cgroup v2 kernel: set, repaired by another life, given back."""

from pathlib import Path

from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.devices.disk_tuning import DiskTuning
from services.qrm.adapters.devices.queues import DiskQueues
from services.qrm.core.devices.disk_lines import CostModel, CostQos, DiskClassRules, DiskRules
from services.qrm.former_values import FormerValues
from shared.adapters.host.cgroup import Cgroups

STATE, CGROUPS = Path("/run/state"), Path("/sys/fs/cgroup")
QOS = CostQos(ctrl="user", rpct=95.0, rlat_us=5000, wpct=90.5, wlat_us=7000, min=50.0, max=150.0)
MODEL = CostModel("user", 3_000_000, 2000, 1000, 2_000_000, 1500, 500)
BOTH = DiskRules(wbt=True, cost=True, classes={"nvme": DiskClassRules(0, QOS, MODEL)})
THROTTLED = DiskRules(wbt=True, cost=True, classes={"nvme": DiskClassRules(3000, QOS)})


class World:
    """The disk that the machine boots from, and the tuning of one life."""

    def __init__(self) -> None:
        self.disk = DiskQueues(Path("/")).disks()[0]
        self.tuning = self.another_life()

    def another_life(self) -> DiskTuning:
        """As after a crash."""
        cgroups = Cgroups(Path("/"))
        former = FormerValues(FormerValuesFile(STATE, "this-boot"), cgroups.exists)
        former.resume()
        self.tuning = DiskTuning(cgroups, DiskQueues(Path("/")), former)
        return self.tuning

    def passes(self, rules: DiskRules) -> dict[str, object]:
        """Passes until one writes nothing, at most three, and what the kernel then says."""
        problems = [self.tuning.settle(rules, float(number), 0.0) for number in range(3)]
        return {**self.seen(), "problems": [one.why for some in problems for one in some],
                "lacking": self.tuning.lacking, "unheeded": self.tuning.unheeded}  # fmt: skip

    def seen(self) -> dict[str, object]:
        """What the kernel says of the disk."""
        # The reader: the file itself may answer EINVAL, where no throttling was ever set up.
        disk = DiskQueues(Path("/")).disks()[0]
        return {"disk": disk.number, "kind": disk.kind, "wbt": disk.wbt_us,
                "qos": (CGROUPS / "io.cost.qos").read_text(),
                "model": (CGROUPS / "io.cost.model").read_text()}  # fmt: skip

    def write(self, name: str, line: str) -> None:
        """Somebody else writes a line."""
        (CGROUPS / name).write_text(f"{self.disk.number} {line}\n")


def report() -> dict[str, object]:
    """One life sets both, another repairs and gives them back; a disk that is throttled is named and left alone."""
    world = World()
    seen = {"before": world.seen(), "set": world.passes(BOTH)}
    world.write("io.cost.qos", "enable=0")
    world.another_life()
    seen["repaired"] = world.passes(BOTH)
    world.another_life()
    seen["given_back"] = world.passes(DiskRules())
    seen["throttled"] = world.passes(THROTTLED)
    world.another_life()
    seen["given_back_again"] = world.passes(DiskRules())
    # What the kernel makes of figures behind `auto`; docs/facts/linux-disks.md#iocost.
    world.write("io.cost.qos", "ctrl=auto rpct=50.00")
    world.write("io.cost.model", "ctrl=auto")
    seen["auto_with_figures"] = world.seen()
    return seen
