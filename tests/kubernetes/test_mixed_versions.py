"""This version and the next one in one cluster of three real nodes: each one's central with the other one's agents, an
upgrade by Helm and the way back. What was seen, and how long it took, is kept in `out/kubernetes/mixed_versions.txt`.
"""

import json

import pytest
from doctor_command import Found, asked, doctor
from kube_rig.cluster import CLUSTER, Cluster
from kube_rig.images import NEXT, NEXT_VERSION, PRODUCT, build_next
from kube_rig.installation import CHART, NAMESPACE, RELEASE
from many_nodes import AGENTS, WELL_LIMIT_S, ManyNodes
from more_nodes import SITES
from rig_parts import until

from shared.build import VERSION

pytestmark = [pytest.mark.mixed, pytest.mark.timeout(600)]

FIRST_OF_THE_NEXT = SITES[0].name
CENTRAL = "deployment/sublet-central"


@pytest.fixture(scope="module", autouse=True)
def following(world: ManyNodes) -> None:
    """Every node has the next version's image."""
    image = build_next(CLUSTER.cache_folder(), print)
    for node in world.nodes:
        node.load(image.archive)


@pytest.fixture(autouse=True)
def told(world: ManyNodes, request: pytest.FixtureRequest) -> None:
    world.sublet.say(request.node.name.removeprefix("test_").replace("_", " "))


def before_upgrade(cluster: Cluster) -> Found:
    """What `sublet doctor --upgrade` says."""
    _, found = asked(doctor("--upgrade", str(CHART), "--kubeconfig", str(cluster.admin), "--namespace", NAMESPACE))
    return found


def replaced(world: ManyNodes, how: str) -> None:
    """Whether the DaemonSet replaces agents by itself (RollingUpdate) or those that somebody deletes (OnDelete)."""
    change = {"spec": {"updateStrategy": {"type": how, "rollingUpdate": None}}}
    world.sublet.in_system("patch", AGENTS, "--patch", json.dumps(change))


def set_image(world: ManyNodes, workload: str, container: str, image: str) -> None:
    world.sublet.in_system("set", "image", workload, f"{container}={image}")


def rolled_out(world: ManyNodes, workload: str) -> None:
    world.sublet.in_system("rollout", "status", workload, f"--timeout={2 * WELL_LIMIT_S:.0f}s")


def test_a_central_of_the_next_version_serves_agents_of_this_one(world: ManyNodes) -> None:
    standing = world.standing()
    set_image(world, CENTRAL, "central", NEXT)
    rolled_out(world, CENTRAL)
    world.hand_out_config()
    world.settle()
    assert world.versions() == dict.fromkeys(world.names, VERSION)
    assert world.standing() == standing
    assert world.nobody_was_evicted()
    set_image(world, CENTRAL, "central", PRODUCT)
    rolled_out(world, CENTRAL)


def test_an_agent_of_the_next_version_works_beside_others_under_a_central_of_this_one(
    world: ManyNodes, cluster: Cluster
) -> None:
    standing, old = world.standing(), world.agent(FIRST_OF_THE_NEXT)["metadata"]
    replaced(world, "OnDelete")
    set_image(world, AGENTS, "agent", NEXT)
    world.sublet.in_system("delete", "pod", old["name"], "--wait")
    mixed = dict.fromkeys(world.names, VERSION) | {FIRST_OF_THE_NEXT: NEXT_VERSION}
    until(lambda: world.versions() == mixed, WELL_LIMIT_S, "a node of the next version")
    world.settle()
    world.hand_out_config()
    found = before_upgrade(cluster)["agents"]
    assert (found["verdict"], "several versions" in found["said"]) == ("warning", True)
    assert world.standing() == standing
    assert world.nobody_was_evicted()
    set_image(world, AGENTS, "agent", PRODUCT)
    replaced(world, "RollingUpdate")
    rolled_out(world, AGENTS)
    world.settle()


def test_helm_upgrade_brings_the_next_version_to_all_and_doctor_says_so(world: ManyNodes, cluster: Cluster) -> None:
    tag = NEXT.partition(":")[2]
    words = ("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", "--set", f"image.tag={tag}")
    world.replace_agents("helm upgrade", lambda: cluster.helm(*words, "--namespace", NAMESPACE))
    assert world.versions() == dict.fromkeys(world.names, NEXT_VERSION)
    found = before_upgrade(cluster)
    assert {found[check]["verdict"] for check in ("agents", "stored versions", "values")} == {"ok"}


def test_helm_rollback_brings_the_earlier_version_back_and_no_pod_notices(world: ManyNodes, cluster: Cluster) -> None:
    world.replace_agents("helm rollback", lambda: cluster.helm("rollback", RELEASE, "--namespace", NAMESPACE))
    assert world.versions() == dict.fromkeys(world.names, VERSION)
    world.hand_out_config()
