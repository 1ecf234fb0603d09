"""An agent that is gone for good on a real kubelet: reclaimed limits end all the same, read from the node's cgroups."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_rig.cluster import Cluster
from kube_rig.installation import NAMESPACE
from kube_rig.product import Product
from rig_parts import until
from test_quick_start import ALL, FALL_LIMIT_S, HALF, HASTE, RISE_LIMIT_S, quick_start_pod

from shared.contracts.pod import RECLAIMED_CPU

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

TRANSCRIPT = Path(__file__).parents[3] / "out/kubernetes/agent-is-gone.txt"
BATCH = "reclaimed-normal-pod"
NOWHERE = "registry.invalid/none:1"
BACK_LIMIT_S = 120.0
LEASE_S = 10.0


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed, with a reclaimed pod that has all CPUs, as nobody else wants them."""
    installed = Product(cluster)
    installed.install(HASTE)
    installed.start(quick_start_pod(BATCH, {RECLAIMED_CPU: "200"}))
    wait_wide(installed)
    yield installed
    TRANSCRIPT.parent.mkdir(parents=True, exist_ok=True)
    TRANSCRIPT.write_text("\n".join(installed.transcript))
    if BATCH in installed.pods():
        installed.end(BATCH)
    installed.leave()


def wait_wide(sublet: Product) -> None:
    until(lambda: sublet.cpus(BATCH) == {ALL}, RISE_LIMIT_S, "the reclaimed pod on all CPUs")


def wait_floor(sublet: Product, limit_s: float) -> float:
    """Seconds until the reclaimed pod is at its floor."""
    began_s = time.monotonic()
    until(lambda: sublet.cpus(BATCH) < HALF, limit_s, "the reclaimed pod at its floor")
    return time.monotonic() - began_s


def set_image(sublet: Product, image: str) -> None:
    change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]
    sublet.in_system("patch", "daemonset", "sublet-node", "--type", "json", "--patch", json.dumps(change))


def state(sublet: Product, container: str) -> dict[str, dict[str, str]]:
    """As kubelet says it, of the newest agent's pod."""
    pods = sorted(sublet.pods_of("node"), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    status = pods[-1]["status"] if pods else {}
    every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    found = [one["state"] for one in every if one["name"] == container]
    return found[0] if found else {}


def test_an_agent_that_hangs_or_is_killed_whenever_it_comes_holds_the_limits_no_longer_than_its_lease(
    sublet: Product,
) -> None:
    for sign in (signal.SIGSTOP, signal.SIGKILL):
        pids = sublet.processes("node", "agent")
        for pid in pids:
            os.kill(pid, sign)
        began_s = time.monotonic()

        def at_the_floor(pids: list[int] = pids, sign: signal.Signals = sign) -> bool:
            if sign == signal.SIGKILL:
                for pid in set(sublet.processes("node", "agent")) - set(pids):
                    os.kill(pid, sign)
            return sublet.cpus(BATCH) < HALF

        until(at_the_floor, 2 * LEASE_S, "the reclaimed pod at its floor")
        sublet.say(f"at the floor {time.monotonic() - began_s:.1f} s after {sign.name}")
        assert "running" in state(sublet, "leave")
        if sign == signal.SIGSTOP:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        wait_wide(sublet)


def test_the_floor_stays_through_a_rollout_to_an_image_that_is_not_there(
    sublet: Product,
) -> None:
    set_image(sublet, NOWHERE)
    took_s = wait_floor(sublet, FALL_LIMIT_S)
    sublet.say(f"at the floor {took_s:.1f} s after the patch")
    reasons = ("ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff")
    until(lambda: state(sublet, "agent").get("waiting", {}).get("reason") in reasons, BACK_LIMIT_S, "no image")
    ends_s = time.monotonic() + LEASE_S + 1
    until(lambda: sublet.cpus(BATCH) == {ALL} or time.monotonic() > ends_s, 2 * LEASE_S, "a lease and a second")
    assert sublet.cpus(BATCH) < HALF
    set_image(sublet, "sublet:test")
    wait_wide(sublet)


def test_an_uninstall_gives_the_node_back_also_where_no_agent_can_ask_and_may_be_repeated(sublet: Product) -> None:
    set_image(sublet, NOWHERE)
    wait_floor(sublet, FALL_LIMIT_S)
    sublet.cluster.kubectl("delete", "rolebinding", "sublet-node-leaving", "--namespace", NAMESPACE)
    sublet.uninstall()
    assert sublet.cpus(BATCH) == {ALL}
    assert sublet.kernel(BATCH, "cpu.idle") == {"0"}
    (limit,) = sublet.kernel(BATCH, "memory.limit_in_bytes", "memory.max")
    assert limit == "max" or int(limit) > 1 << 60
    assert sublet.left() == []
