# ruff: noqa
# mypy: ignore-errors
"""Try."""

from collections.abc import Iterator
import pytest
from kube_rig.cluster import Cluster
from kube_rig.product import Product

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]
SCRIPT = """
import os, select, glob
print(open("/proc/self/status").read().split("CapEff:")[1].split()[0])
for p in ["/proc/pressure/cpu", "/proc/pressure/memory", "/host/proc/pressure/cpu"]:
    for t in (b"some 100000 1000000\\0", b"some 200000 2000000\\0"):
        try:
            fd = os.open(p, os.O_RDWR | os.O_NONBLOCK); os.write(fd, t); e = select.epoll(); e.register(fd, select.EPOLLPRI); print(p, t, "armed", e.poll(3)); break
        except OSError as error:
            print(p, t, repr(error))
print(os.stat("/proc/pressure/cpu"), open("/proc/mounts").read())
"""


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    installed = Product(cluster)
    installed.install({"scheduling": {"enabled": False}})
    yield installed
    installed.uninstall()
    installed.leave()


def test_try(sublet: Product, cluster: Cluster) -> None:
    out = sublet.in_system("exec", "daemonset/sublet-node", "-c", "agent", "--", "python", "-c", SCRIPT)
    open("/tmp/w/bus_psi.txt", "w").write(str(out))
    out = sublet.in_system("exec", "deploy/sublet-central", "--", "python", "-m", "sublet", "explain", "node/x")
    open("/tmp/w/bus_psi2.txt", "w").write(str(out))
