"""The groups that kubelet has made tell which layout it uses on this host."""

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.kubelet_layout import DRIVERS, KubeletLayout
from shared.errors import Unavailable

ROOTS = ("", "kubelet")
"""Kubelet's cgroup root: the machine's, or that of kind."""


def find_layout(cgroups: Cgroups) -> KubeletLayout:
    """Return the layout whose top group exists; kubelet creates it before its first pod.

    Raises:
        Unavailable: no group of kubelet's exists.
    """
    known = [KubeletLayout(driver, root) for root in ROOTS for driver in DRIVERS]
    for layout in known:
        if cgroups.exists(layout.top):
            return layout
    names = ", ".join(layout.top for layout in known)
    raise Unavailable(f"{cgroups.root}: none of kubelet's groups is there ({names}); does kubelet run on this host?")
