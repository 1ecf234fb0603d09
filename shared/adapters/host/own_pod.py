"""`OwnPod` gives the agent's own pod the weight of a pod that requests a whole CPU, although it requests far less.

Kubelet derives a pod's weight from its request. An agent uses little CPU, and needs it at once when others keep all
CPUs busy (docs/facts/linux-scheduling.md#weight-of-a-small-request).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import SHARES_PER_CORE, Knob, to_file
from shared.core.cgroups.layout import Layout

log = structlog.get_logger()


@dataclass(slots=True)
class OwnPod:
    """The groups of the pod, and of the container in it, that a process of this host is in."""

    cgroups: Cgroups
    layout: Layout
    pid: int
    _raised: bool = False
    _refused: str = ""

    def raise_weight(self) -> None:
        """Raise the weight once; a higher weight stays, and after a refusal kubelet's weight stays until the next
        call.

        The weight stays until the pod ends; only our own group is written.
        """
        if self._raised:
            return
        wanted = int(to_file(Knob.CPU_SHARES, SHARES_PER_CORE, self.cgroups.version))
        try:
            for group in self._groups():
                found = self.cgroups.raw(group, Knob.CPU_SHARES)
                if found is not None and int(found) < wanted:
                    self.cgroups.write(group, Knob.CPU_SHARES, SHARES_PER_CORE)
        except OSError as error:
            # Logged once: each pass tries again, and repeating the line every few seconds helps no one.
            if str(error) != self._refused:
                log.warning("own_pod.weight_refused", why=str(error))
            self._refused = str(error)
        else:
            self._raised = True

    def _groups(self) -> Iterator[str]:
        """The pod's group and the container's; none where the process is in no pod."""
        for home in self.layout.homes:
            for pod in self.cgroups.children(home):
                for container in self.cgroups.children(f"{home}/{pod}"):
                    group = f"{home}/{pod}/{container}"
                    if str(self.pid) in (self.cgroups.text(group, "cgroup.procs", "cpu") or "").split():
                        yield from (f"{home}/{pod}", group)
                        return
