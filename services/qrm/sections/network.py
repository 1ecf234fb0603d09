"""The settings of the network say which id the packets of a class of pods have."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from shared.contracts.pod import QosClass
from shared.settings import Settings

ClassId = Annotated[int, Field(ge=0, lt=1 << 32)]


class NetClassSettings(Settings):
    """Ids of packets by class of pods, for others' filters (`net_cls.classid`, cgroup v1); 0: none. The id of the tc
    class a:b is 65536 a + b.
    """

    enabled: bool = False
    """Whether they are written; a kernel, or a cgroup version, without the file is the condition KernelLacks."""
    dedicated_cores_id: ClassId = 0
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores_id: ClassId = 0
    """Tenants without (LS)."""
    reclaimed_cores_id: ClassId = 0
    """Batch work (BE)."""
    system_cores_id: ClassId = 0
    """Pods of the node itself (SYSTEM)."""

    def rules(self) -> Mapping[QosClass, int]:
        """As the core takes them; none where it is off."""
        ids: dict[QosClass, int] = {
            "dedicated_cores": self.dedicated_cores_id,
            "shared_cores": self.shared_cores_id,
            "reclaimed_cores": self.reclaimed_cores_id,
            "system_cores": self.system_cores_id,
        }
        return ids if self.enabled else {}
