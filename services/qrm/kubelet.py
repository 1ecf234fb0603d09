"""CPUs that kubelet's static CPU manager has given to single containers: they are its own, Sublet leaves them alone.

Kubelet keeps them in a checkpoint of its own and writes them anew every ten seconds (notes/reliability.md section 6):
whoever placed somebody else there would fight it. With the policy "none" there is nothing to leave alone.
"""

import json
from pathlib import Path

from shared.adapters.hostfs import read_text
from shared.core.cpuset import CpuSet
from shared.errors import Unavailable

STATE_FILE = "var/lib/kubelet/cpu_manager_state"


def exclusive_cpus(host_root: Path) -> dict[str, CpuSet]:
    """The CPUs of every pod that kubelet pinned, by UID; empty without kubelet, or where it pins nobody.

    Raises:
        Unavailable: the file is there and says nothing that can be read.
    """
    path = f"{host_root}/{STATE_FILE}"
    text = read_text(path)
    if not text:
        return {}
    try:
        state = json.loads(text)
        if state["policyName"] != "static":
            return {}
        pods = (state.get("entries") or {}).items()
        return {str(uid): CpuSet.union(map(CpuSet.parse, containers.values())) for uid, containers in pods}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unavailable(f"{path}: {error!r}; which CPUs kubelet has pinned is not known") from error
