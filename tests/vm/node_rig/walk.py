"""The tutorial, step by step on the emulated node: wait for what the text prints, and keep what the node says."""

import time
from dataclasses import dataclass, field

from kube_rig.installation import Installation
from kube_rig.tutorial import CREATED, SUCCEEDED, Document, lines_of, printed_taint, taints
from rig_parts import until

from node_rig.cluster import GuestCluster
from shared.contracts.pod import TUTORIAL_RECLAIMED_CPU

OFFER_LIMIT_S, SETS_LIMIT_S, EVICT_LIMIT_S, TAINT_LIMIT_S = 900.0, 300.0, 900.0, 600.0
HEAD = """\
# The quick start on 48 CPUs, step by step

`make test-vm-kubelet` plays Katalyst's quick start and writes this page. The kubelet has the systemd driver and
cgroup v2, in an emulated machine with 48 CPUs on 2 NUMA nodes. The pods and the configuration that the tutorial
prints are used as printed. Sets of CPUs are read from the kernel of that machine. Central and its hub run on a second
node, which is not emulated. An emulated CPU is six to ten times slower than a real one, so times on this page are no
measurements.

The tutorial does not print its `*-large-pod-*`. Theirs are made of its normal ones, with more resources; the busy one
is limited to half a core, and its load counts all threads that want to run. For the memory step, a threshold is set
just below the free memory, because 175 GB cannot be filled here. Tenants stay young, so that the policy gives the
tutorial's figures (docs/adaptive-policy.md).

| step | the tutorial prints | the node says | after s |
|---|---|---|---|"""


@dataclass
class Walk:
    """The installation, and what the tutorial prints beside what the node says."""

    sublet: Installation
    node: GuestCluster
    rows: list[tuple[str, str, str, float]] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)

    def step(self) -> None:
        """From here the seconds of the next rows count."""
        self.began_s = time.monotonic()

    def saw(self, what: str, printed: str, said: str) -> None:
        """Keep a row, and hold the node to it."""
        self.rows.append((what, printed, said, time.monotonic() - self.began_s))
        assert said == printed, what

    def wait_offer(self, printed: str, step: str) -> None:
        """Wait for what the tutorial prints of the CustomNodeResource."""

        def told() -> str:
            status = self.sublet.resource().get("status", {})
            offers = {
                status.get(part, {}).get(TUTORIAL_RECLAIMED_CPU) for part in ("resourceAllocatable", "resourceCapacity")
            }
            return " ".join(map(str, offers))

        until(lambda: told() == printed, OFFER_LIMIT_S, f"an offer of {printed}")
        self.sublet.type("get", "kcnr")
        self.saw(f"{step}: the offer", printed, told())

    def wait_cpus(self, name: str, printed: str, step: str) -> None:
        """Wait for the set that the tutorial prints for a pod's container."""
        until(lambda: self.cpus(name) == printed, SETS_LIMIT_S, f"{name} on {printed}")
        self.sublet.transcript.append(f"$ ./tmp/get_cpuset.sh {name}\n{self.cpus(name)}\n")
        self.saw(f"{step}: `cpuset.cpus` of `{name}`", printed, self.cpus(name))

    def cpus(self, name: str) -> str:
        """The set of a pod's container, as the kernel has it."""
        return self.of_group(name, "cpuset.cpus")

    def of_group(self, name: str, file: str) -> str:
        """What a file of the cgroup of a pod's container says."""
        (container,) = self.node.get("pod", name)["status"]["containerStatuses"]
        own = container["containerID"].removeprefix("containerd://")  # a scope is called after it, or a plain group
        groups = (
            f"find /sys/fs/cgroup -type d -path '*/kubepods*' -name '*{own}*' -exec test -e '{{}}/{file}' ';' -print"
        )
        return self.node.guest.shell(f"cat $({groups})/{file}").strip()

    def wait_taint(self, which: int, step: str) -> None:
        """Wait for the taint that the tutorial prints of the CustomNodeResource, in its order."""
        until(lambda: taints(self.sublet), TAINT_LIMIT_S, "the taint of the CustomNodeResource")
        (taint,) = taints(self.sublet)
        self.saw(f"{step}: the taint", _words(printed_taint(which)), _words(taint))

    def wait_evicted(self, name: str, scope: str, plugin: str, step: str) -> None:
        """Wait for the Events that the tutorial prints."""
        self.sublet.wait_evicted(name, scope, EVICT_LIMIT_S)
        self.sublet.transcript.append("$ kubectl get event -A | grep evict\n" + "\n".join(self.sublet.evict_lines()))
        names = {"scope": scope, "plugin": plugin}
        for reason, message in (("EvictCreated", CREATED), ("EvictSucceeded", SUCCEEDED)):
            said = [f"{one}: {text}" for one, text in lines_of(self.sublet, name) if one == reason]
            printed = f"{reason}: {message.format(**names)}"
            self.saw(
                f"{step}: the event of `{name}`", printed, next((one for one in said if one == printed), str(said))
            )

    def stays(self, length_s: float, step: str) -> None:
        """Nobody is evicted for so long."""
        ends_s = time.monotonic() + length_s
        until(lambda: self.sublet.evict_lines() or time.monotonic() > ends_s, 2 * length_s, "the end of it")
        self.saw(
            f"{step}: pods evicted within {length_s:.0f} s", "none", ", ".join(self.sublet.evict_lines()) or "none"
        )

    def page(self) -> str:
        """What was seen, as a table, and all that was typed."""
        rows = (f"| {what} | {printed} | {said} | {s:.0f} |" for what, printed, said, s in self.rows)
        return "\n".join([HEAD, *rows, "", "## What was typed", "", "```text", *self.sublet.transcript, "```", ""])


def _words(taint: Document) -> str:
    """A taint without its time."""
    return ", ".join(f"{key}: {taint[key]}" for key in sorted(taint.keys() - {"timeAdded"}))
