"""Settings of the network: packet ids by class of pods."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from shared.contracts.pod import QosClass
from shared.settings import Settings

ClassId = Annotated[int, Field(ge=0, lt=1 << 32)]


class NetClassSettings(Settings):
    """Packet ids by class of pods, for filters of others (`net_cls.classid`, cgroup v1); 0: none. The id of the tc
    class a:b is 65536 a + b."""

    enabled: bool = False
    """Writes the ids; on a kernel or cgroup version without the file the condition is KernelLacks."""
    dedicated_cores_id: ClassId = 0
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores_id: ClassId = 0
    """Other tenants (LS)."""
    reclaimed_cores_id: ClassId = 0
    """Batch work (BE)."""
    system_cores_id: ClassId = 0
    """Pods of the node itself (SYSTEM)."""

    def rules(self) -> Mapping[QosClass, int]:
        """Return the ids as the core takes them; empty if they are off."""
        ids: dict[QosClass, int] = {
            "dedicated_cores": self.dedicated_cores_id,
            "shared_cores": self.shared_cores_id,
            "reclaimed_cores": self.reclaimed_cores_id,
            "system_cores": self.system_cores_id,
        }
        return ids if self.enabled else {}
