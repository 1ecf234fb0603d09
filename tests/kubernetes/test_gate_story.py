"""The story of the gate on a real kubelet and scheduler: pods that ask for reclaimed resources are created behind it,
one that no node has room for holds those behind it up, and with it gone they go and run. Switched off, and uninstalled,
it leaves nothing behind.

What was typed and said is kept in `out/kubernetes/gate-story.txt`.
"""

import asyncio
import base64
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_rig.clients import CommandError
from kube_rig.cluster import Cluster
from kube_rig.installation import CHART, NAMESPACE, RELEASE
from kube_rig.node import NODE
from kube_rig.product import Product
from rig_parts import until

from services.central.core.profiles.capacity_gate import GATE
from services.central.core.scheduling.cluster.node_documents import REFUSES
from services.central.settings import ExtenderSettings, KubernetesSettings
from shared.adapters.kube.client import Kube, KubeError
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.api_kind import PODS
from sublet.replay.decisions.frames import ClusterFrame
from sublet.replay.decisions.reading import read_cluster_recording
from sublet.replay.decisions.run import replay_decisions

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

SEEN_LIMIT_S = 60.0
CERTIFICATE = ExtenderSettings().secret
OTHER = "example.org/quota"
SETTINGS = {"scheduling": {"enabled": True, "gate": "hold", "replicas": 1}}
EXTENDER = f"system:serviceaccount:{NAMESPACE}:sublet-extender"
TRANSCRIPT = Path(__file__).parents[2] / "out/kubernetes/gate-story.txt"
SUBLET = ("python", "-m", "sublet")
RECORDED_S = 20
"""An offer comes every ten seconds."""
WAITING = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8080/metrics').read().decode())"

Document = dict[str, Any]


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed with extender and gate, which are off in the chart."""
    installed = Product(cluster)
    installed.install(SETTINGS)
    for deployment in ("webhook", "extender"):
        installed.in_system("rollout", "status", f"deployment/sublet-{deployment}", f"--timeout={SEEN_LIMIT_S:.0f}s")
    # The way to a new Service takes the cluster a moment, in which pods are created as they were sent.
    until(lambda: marked(cluster), SEEN_LIMIT_S, "a webhook that is reached")
    yield installed
    installed.leave()
    TRANSCRIPT.parent.mkdir(parents=True, exist_ok=True)
    TRANSCRIPT.write_text("\n".join(installed.transcript))


def batch(name: str, image: str, millis: int, *gates: str) -> Document:
    amounts = {RECLAIMED_CPU: str(millis), RECLAIMED_MEMORY: "16Mi"}
    container = {"name": "main", "image": image, "imagePullPolicy": "Never",
                 "command": ["sh", "-c", "trap exit TERM; sleep infinity & wait"],
                 "resources": {"requests": amounts, "limits": amounts}}  # fmt: skip
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    spec |= {"schedulingGates": [{"name": gate} for gate in gates]} if gates else {}
    metadata = {"name": name, "annotations": {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def marked(cluster: Cluster) -> bool:
    """Whether a pod would be created behind the gate now."""
    asked = json.dumps(batch("asked", cluster.images.base.name, 1))
    there = cluster.kubectl("create", "--dry-run=server", "--output", "json", "--filename", "-", given=asked)
    return {"name": GATE} in json.loads(there)["spec"].get("schedulingGates", [])


def gates(cluster: Cluster, name: str) -> list[str]:
    return [gate["name"] for gate in cluster.get("pod", name)["spec"].get("schedulingGates", [])]


def waiting(sublet: Product) -> float:
    """Pods at the gate, as the extender's leader sees them."""
    text = sublet.in_system("exec", "deployment/sublet-extender", "--", "python", "-c", WAITING)
    lines = [line for line in text.splitlines() if line.startswith("sublet_gate_waiting_pods ")]
    return float(lines[0].split()[1]) if lines else 0.0


def refused(cluster: Cluster, name: str, patch: Document) -> str:
    """What the API server says to the extender."""

    async def tried() -> str:
        kube = Kube(cluster.client(EXTENDER))
        try:
            await kube.merge(PODS.path(name, "default"), patch, manager="sublet-extender")
        except KubeError as error:
            return str(error)
        finally:
            await kube.close()
        return "it was taken"

    return asyncio.run(tried())


def explained(sublet: Product, name: str) -> str:
    """What `sublet explain` says of a pod where central runs, by way of the hub; "" while nothing was decided."""
    with contextlib.suppress(CommandError):
        return sublet.in_system("exec", "deployment/sublet-central", "--", *SUBLET, "explain", f"pod/default/{name}")
    return ""


def recorded(sublet: Product) -> bytes:
    """What `sublet record --cluster` writes where central runs, in a form that kubectl does not change."""
    words = [*SUBLET, "record", "--cluster", "--for", str(RECORDED_S), "-o", "-"]
    ran = f"subprocess.run({words}, stdout=-1, check=True).stdout"
    work = f"import base64, subprocess; print(base64.b64encode({ran}).decode())"
    return base64.b64decode(sublet.in_system("exec", "deployment/sublet-central", "--", "python", "-c", work))


def test_pods_wait_for_room_in_their_order_and_others_gates_stay(sublet: Product, cluster: Cluster) -> None:
    image = cluster.images.base.name
    try:
        for one in (batch("large", image, 10**9), batch("small", image, 1), batch("held", image, 1, OTHER)):
            sublet.type("apply", "--filename", "-", given=json.dumps(one, indent=1))
        assert (gates(cluster, "small"), gates(cluster, "held")) == ([GATE], [OTHER, GATE])
        until(lambda: waiting(sublet) == 3, SEEN_LIMIT_S, "three pods that wait")
        assert gates(cluster, "small") == [GATE], "the one before it fits nowhere"
        until(lambda: "it waits behind default/large" in explained(sublet, "small"), SEEN_LIMIT_S, "a reason to wait")
        sublet.type("--namespace", NAMESPACE, "exec", "deployment/sublet-central", "--", *SUBLET, "explain",
                    "pod/default/small")  # fmt: skip
        sublet.say("the extender may take its own gate away, and nothing else")
        taken = {"schedulingGates": [{"name": OTHER}]}
        labelled = {"metadata": {"labels": {"a": "b"}}, "spec": taken}
        assert "changes its scheduling gates alone" in refused(cluster, "held", labelled)
        placed = {"spec": taken | {"nodeSelector": {"a": "b"}}}
        assert "changes its scheduling gates alone" in refused(cluster, "held", placed)
        assert "leaves all others" in refused(cluster, "held", {"spec": {"schedulingGates": [{"name": GATE}]}})
        sublet.type("delete", "pod", "large")
        until(lambda: gates(cluster, "small") == [], SEEN_LIMIT_S, "a pod that goes")
        until(lambda: cluster.get("pod", "small")["status"]["phase"] == "Running", SEEN_LIMIT_S, "a pod that runs")
        assert cluster.get("pod", "small")["spec"]["nodeName"] == NODE
        assert gates(cluster, "held") == [OTHER, GATE]
        until(lambda: "there is room for it" in explained(sublet, "small"), SEEN_LIMIT_S, "a reason to go")
        sublet.type("get", "pods")
    finally:
        cluster.kubectl("delete", "pod", "large", "small", "--ignore-not-found", "--now")


def test_what_central_sees_is_recorded_and_decided_anew(sublet: Product) -> None:
    recording = read_cluster_recording("story", io.BytesIO(recorded(sublet)))
    seen: set[str] = set()

    def watched() -> Iterator[ClusterFrame]:
        for frame in frames:
            seen.add(frame.what.kind)
            yield frame

    frames, recording.frames = recording.frames, watched()
    outcome = replay_decisions(recording, KubernetesSettings())
    assert {"Node", "CustomNodeResource", "Pod", "offer"} <= seen
    assert recording.faults.refused == []
    assert outcome.total("different") == 0


def words(cluster: Cluster) -> str | None:
    """What the extender said of the node."""
    found: str | None = cluster.get("node", NODE)["metadata"]["annotations"].get(REFUSES)
    return found


def secrets(sublet: Product) -> set[str]:
    return set(sublet.in_system("get", "secrets", "--output", "name").split())


def test_what_is_switched_off_lets_everybody_go_and_leaves_nothing(sublet: Product, cluster: Cluster) -> None:
    cluster.apply(batch("waits", cluster.images.base.name, 10**9))
    assert gates(cluster, "waits") == [GATE]
    cluster.kubectl("annotate", "node", NODE, f"{REFUSES}=cpu in use")
    assert f"secret/{CERTIFICATE}" in secrets(sublet)
    off = ("--reuse-values", "--set", "scheduling.enabled=false")
    cluster.helm("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE, *off)
    sublet.say("the upgrade has ended, and with it all that the extender and its gate have left")
    assert (gates(cluster, "waits"), gates(cluster, "held"), words(cluster)) == ([], [OTHER], None)
    assert f"secret/{CERTIFICATE}" not in secrets(sublet)
    sublet.type("get", "pods")


def test_an_uninstall_lets_everybody_go_and_leaves_nothing(sublet: Product, cluster: Cluster) -> None:
    try:
        cluster.apply(batch("later", cluster.images.base.name, 1, GATE, OTHER))
        cluster.kubectl("annotate", "node", NODE, f"{REFUSES}=cpu in use")
        sublet.uninstall()
        assert (gates(cluster, "later"), words(cluster)) == ([OTHER], None)
        assert sublet.left() == []
    finally:
        cluster.kubectl("delete", "pod", "held", "waits", "later", "--ignore-not-found", "--now")
