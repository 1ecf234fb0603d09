"""`make bench-api-server`: central over thousands of nodes that a real API server and etcd know; as root, 6 minutes.

The nodes have no machines: `paper_fleet` writes what their kubelets and agents would, and simulated nodes speak on real
NATS servers. What central writes is counted by the API server itself, in its audit log.
"""

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kube_rig.certificates import Authority, Identity
from kube_rig.clients import Clients
from kube_rig.cluster import CLUSTER
from kube_rig.control_plane import build_control_plane, client
from kube_rig.isolation import Isolation, ToThisMachine
from kube_rig.programs import build_programs
from rig.packages import RigMissing
from rig_parts import until

from bench.cluster.fleet import rows_of
from bench.rigs.disturbance import Watch
from bench.rigs.report import Run, add_options, observed, progress, publish, run_before, stage
from shared.errors import Refused, Unavailable
from sublet.fleet.plan import FleetPlan, checked
from sublet.fleet.run import run_fleet
from sublet.fleet.stages import FleetCluster

NAME = "api-server"
NODES = 3000
CRDS = Path(__file__).parents[2] / "deploy/k8s/crds"
CENTRAL = "fleet-central"
ADMINS = ["system:masters"]
MADE_LIMIT_S, MADE_LIMIT_A_NODE_S = 60.0, 0.1
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": [CENTRAL], "verbs": ["create", "update", "patch", "delete"]},
        {"level": "None"},
    ],
}


class Written:
    """What the API server has noted of central's writes."""

    def __init__(self, log: Path) -> None:
        self._log = log

    async def count(self) -> int:
        """How many there were so far."""
        return sum(self.by_kind().values())

    def by_kind(self) -> Counter[str]:
        """The same by verb and kind."""
        if not self._log.exists():
            return Counter()
        # The last line may be half of one, while the server writes.
        whole = self._log.read_text().rpartition("\n")[0]
        events = [json.loads(line) for line in whole.splitlines()]
        return Counter(f"{event['verb']} {event['objectRef']['resource']}" for event in events)


@contextmanager
def api_server(cache: Path, log: Path) -> Iterator[Clients]:
    """etcd and an API server with the product's kinds, and nothing else; central's writes are noted in the log."""
    programs, isolation, folder = build_programs(cache, stage), Isolation(cache, ToThisMachine()), cache / "cluster"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "logs").mkdir(parents=True)
    policy = folder / "audit.json"
    policy.write_text(json.dumps(POLICY))
    log.unlink(missing_ok=True)
    try:
        isolation.open()
        authority = Authority(folder / "certificates")
        plane = build_control_plane(isolation, programs, authority, folder)
        plane.apiserver.words += [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
        try:
            plane.etcd.start()
            plane.apiserver.start()
            admin = client(authority, folder, "admin", ADMINS)
            certificate = Identity(folder / "certificates/admin.crt", folder / "certificates/admin.key")
            there = Clients(programs, authority, folder, admin, certificate)
            there.kubectl("apply", "--server-side", "--kustomize", str(CRDS))
            there.kubectl("wait", "crd", "--for=condition=Established", "--timeout=60s", "--all")
            yield there
        finally:
            plane.stop()
            shutil.rmtree(folder / "etcd", ignore_errors=True)
    finally:
        isolation.close()


@contextmanager
def paper_nodes(cluster: Clients, nodes: int) -> Iterator[None]:
    """So many nodes, which live for as long as the block lasts.

    Raises:
        RigMissing: they do not come to be.
    """
    made, log = cluster.folder / "made", cluster.folder / "logs/paper-fleet.log"
    words = [sys.executable, "-m", "bench.kubernetes.paper_fleet", "--nodes", str(nodes),
             "--kubeconfig", str(cluster.admin), "--made", str(made)]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=out, stderr=out)
    try:
        limit_s = MADE_LIMIT_S + nodes * MADE_LIMIT_A_NODE_S
        until(lambda: made.exists() or process.poll() is not None, limit_s, f"{nodes} nodes on paper")
        if not made.exists():
            raise RigMissing(f"the nodes on paper: {log.read_text()[-1000:]}")
        yield
        if process.poll() is not None:
            raise RigMissing(f"the nodes on paper have ended: {log.read_text()[-1000:]}")
    finally:
        process.communicate()


def measure(cache: Path, nodes: int, seconds: float) -> Run:
    """The rows of a fleet of this size."""
    log = cache / "audit.log"
    written, watch = Written(log), Watch()
    with api_server(cache, log) as cluster:
        stage(f"{nodes} nodes on paper are made")
        with paper_nodes(cluster, nodes):
            central = FleetCluster(cluster.client(CENTRAL, ADMINS), written.count)
            report = asyncio.run(run_fleet(checked(FleetPlan(nodes, seconds=seconds)), progress, central))
    stage((cluster.folder / "logs/paper-fleet.log").read_text().strip())
    told = ", ".join(f"{count} {what}" for what, count in written.by_kind().most_common())
    stage(f"all that central wrote from its start to its end: {told}")
    return Run.here(NAME, observed(rows_of(report), watch.disturbance(), 1))


def main() -> int:
    """Measure and print."""
    words = argparse.ArgumentParser(prog="make bench-api-server", description=__doc__)
    words.add_argument("--nodes", type=int, default=NODES)
    words.add_argument("--seconds", type=float, default=60.0, help="for which central is watched at rest")
    add_options(words)
    chosen = words.parse_args()
    try:
        CLUSTER.require_tools()
        before = run_before(NAME, chosen.against)
        with CLUSTER.cache_held() as cache:
            run = measure(cache, chosen.nodes, chosen.seconds)
    except (RigMissing, Refused, Unavailable) as error:
        print(f"bench-api-server: {error}", file=sys.stderr)
        return 2
    progress("")
    publish(run, before, chosen.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
