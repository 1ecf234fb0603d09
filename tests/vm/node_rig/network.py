"""The network that the control plane and the emulated node share: a namespace of its own, with no way out of it."""

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kube_rig.isolation import NODE_IP, POD_NETWORK
from rig.packages import RigMissing, run

OUTSIDE_IP = NODE_IP
"""Where the control plane answers, and names are resolved: the rig's own address for both."""
GUEST_IP, PREFIX = "10.213.0.3", 24
TAP = "guest"
_OWN = Path("/proc/thread-self/ns/net")
_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
"""Of the network of the thread that opens it."""
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Inside:
    """Programs run where the test is; they end with the thread that starts them, however that ends."""

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """The words that run a program."""
        return ["setpriv", "--pdeathsig", "KILL", "env", "NO_PROXY=*", *map(str, words)]


@contextmanager
def own_network() -> Iterator[Inside]:
    """This thread, and whatever it starts, in a new network with the guest's line in it, until the block ends.

    Raises:
        RigMissing: this machine does not let us.
    """
    before = os.open(_OWN, os.O_RDONLY)
    try:
        if _LIBC.unshare(_CLONE_NEWNET):
            raise RigMissing(f"no network namespace for the guest: {os.strerror(ctypes.get_errno())}; run it as root")
        try:
            run(["ip", "link", "set", "lo", "up"])
            run(["ip", "tuntap", "add", TAP, "mode", "tap"])
            run(["ip", "address", "add", f"{OUTSIDE_IP}/{PREFIX}", "dev", TAP])
            run(["ip", "link", "set", TAP, "up"])
            run(["ip", "route", "add", POD_NETWORK, "via", GUEST_IP])
            _FORWARD.write_text("1")
            yield Inside()
        finally:
            _LIBC.setns(before, _CLONE_NEWNET)
    finally:
        os.close(before)
