"""Offloading on a real kernel: page cache that nobody needs is given back, step by step; what is in use stays."""

import subprocess
import sys
import time
from pathlib import Path

from services.qrm.adapters.offload.offloader import CgroupOffloader
from services.qrm.core.memory.offload import OffloadRules
from shared.adapters.host.cgroup import Cgroups

MIB = 1 << 20
CGROUPS = Path("/sys/fs/cgroup")
GROUP = "offload"
CACHE_MIB, HELD_MIB, STEPS = 256, 64, 12
RULES = OffloadRules(stride=0.25, most_bytes=64 * MIB, keep_bytes=32 * MIB, target_percent=10.0, refault_bytes_s=1e12)
HOLD = f"""
import sys, time
open("/var/tmp/cache", "wb").write(b"x" * ({CACHE_MIB} << 20))
held = bytearray({HELD_MIB} << 20)
for at in range(0, len(held), 4096): held[at] = 1
print("ready", flush=True)
sys.stdin.read()
"""


def report() -> dict[str, object]:
    """One process with cache and memory of its own; a number of steps; what was in use before and after."""
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +cpuset")
    (CGROUPS / GROUP).mkdir()
    enter = f'echo $$ > {CGROUPS}/{GROUP}/cgroup.procs; exec {sys.executable} -c "$0"'
    process = subprocess.Popen(["sh", "-c", enter, HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    process.stdout.readline()
    subprocess.run(["sync"], check=True)  # dirty pages cannot be given back
    offloader = CgroupOffloader(Cgroups(Path("/")))
    used, steps = [usage()], []
    for number in range(STEPS):
        decision, done = offloader.step(GROUP, RULES, float(number * 10))
        steps.append([decision.bytes, done.given_bytes, done.status, done.why or decision.why])
        used.append(usage())
        time.sleep(0.1)
    alive = process.poll() is None
    process.kill()
    process.wait()
    (CGROUPS / GROUP).rmdir()
    return {"used": used, "steps": steps, "alive": alive}


def usage() -> int:
    """Bytes in use by the group."""
    return int((CGROUPS / GROUP / "memory.current").read_text())
