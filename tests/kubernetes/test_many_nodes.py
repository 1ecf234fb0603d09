"""Three real nodes on this machine: pods are spread, nodes are emptied and made anew, another central leads, and agents
are replaced under load. Nobody is evicted for any of it. What was seen, and how long the update took, is kept in
`out/kubernetes/many_nodes.txt`.
"""

import time

import pytest
from kube_rig.cluster import Cluster
from kube_rig.installation import NAMESPACE
from kube_rig.node import NODE
from many_nodes import AGENTS, BATCH, GONE_LIMIT_S, TENANT, WELL_LIMIT_S, ManyNodes
from more_nodes import SITES, is_ready
from rig_parts import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

SECOND, THIRD = (site.name for site in SITES)
LEAD_LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def told(world: ManyNodes, request: pytest.FixtureRequest) -> None:
    world.sublet.say(request.node.name.removeprefix("test_").replace("_", " "))


def test_every_node_offers_and_batch_pods_are_spread_over_all(world: ManyNodes) -> None:
    assert world.places(BATCH) == dict.fromkeys(world.names, 2)
    assert world.places(TENANT) == dict.fromkeys(world.names, 1)
    world.sublet.type("get", "nodes")
    world.sublet.type("get", "kcnr")
    pods = world.pods(BATCH)
    for node in world.nodes:
        assert world.granted_millis(node, pods), node.site.name


def test_a_cordoned_node_keeps_its_pods_and_its_offer_and_takes_no_more(world: ManyNodes, cluster: Cluster) -> None:
    before = world.standing()
    world.sublet.type("cordon", SECOND)
    cluster.kubectl("scale", f"deployment/{BATCH}", "--replicas=8")
    world.settle()
    assert world.places(BATCH) == {NODE: 3, SECOND: 2, THIRD: 3}
    assert before.items() <= world.standing().items()
    assert world.nobody_was_evicted()
    world.sublet.type("uncordon", SECOND)
    cluster.kubectl("scale", f"deployment/{BATCH}", "--replicas=6")
    until(lambda: len(world.pods(BATCH)) == 6, GONE_LIMIT_S, "two pods less")


def test_a_node_that_is_drained_loses_pods_to_the_others_and_keeps_its_agent(world: ManyNodes) -> None:
    agent = world.agent(SECOND)["metadata"]["uid"]
    words = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={GONE_LIMIT_S:.0f}s")
    world.sublet.type("drain", SECOND, *words)
    world.sublet.wait_ready()
    world.settle()
    assert SECOND not in world.places(BATCH) + world.places(TENANT)
    assert world.agent(SECOND)["metadata"]["uid"] == agent
    assert world.nobody_was_evicted()
    world.sublet.type("uncordon", SECOND)
    world.spread()


def test_a_node_that_is_deleted_and_made_again_under_its_name_is_a_new_one_that_offers(
    world: ManyNodes, cluster: Cluster
) -> None:
    (node,) = (one for one in world.nodes if one.site.name == THIRD)
    elsewhere = {pod["metadata"]["uid"] for pod in world.pods() if pod["spec"]["nodeName"] != THIRD}
    before = cluster.get("node", THIRD)["metadata"]["uid"]
    node.kubelet.kill()
    world.sublet.type("delete", "node", THIRD)
    until(lambda: THIRD not in world.resources(), GONE_LIMIT_S, f"the end of what {THIRD} said")
    node.kubelet.start()
    until(lambda: is_ready(cluster, THIRD), WELL_LIMIT_S, f"{THIRD} being Ready again")
    world.sublet.wait_ready()
    world.settle()
    assert elsewhere <= {pod["metadata"]["uid"] for pod in world.pods()}
    uid = cluster.get("node", THIRD)["metadata"]["uid"]
    assert uid != before
    (owner,) = world.resources()[THIRD]["metadata"]["ownerReferences"]
    assert owner["uid"] == uid
    assert world.nobody_was_evicted()
    world.spread()


def leader(cluster: Cluster) -> str:
    """The pod of the central that holds the Lease."""
    holder = cluster.get("lease", "sublet-central", "--namespace", NAMESPACE)["spec"].get("holderIdentity") or ""
    return str(holder).partition("_")[0]


def test_where_the_leading_central_is_killed_the_other_one_leads_and_nobody_is_taken_for_lost(
    world: ManyNodes, cluster: Cluster
) -> None:
    before, standing = leader(cluster), world.standing()
    began_s = time.monotonic()
    (pod,) = (one for one in world.sublet.pods_of("central") if one["metadata"]["name"] == before)
    world.kill(pod)  # it gives no Lease back
    world.sublet.in_system("delete", "pod", before, "--grace-period=0", "--force")
    until(lambda: leader(cluster) not in ("", before), LEAD_LIMIT_S, "another central that leads")
    world.sublet.say(f"another central led {time.monotonic() - began_s:.1f} s after the first one was killed")
    world.sublet.wait_ready()
    world.hand_out_config()
    assert world.standing() == standing
    assert world.nobody_was_evicted()


def test_agents_are_replaced_one_after_the_other_under_load_and_no_pod_notices(world: ManyNodes) -> None:
    world.replace_agents("kubectl rollout restart", lambda: world.sublet.in_system("rollout", "restart", AGENTS))
