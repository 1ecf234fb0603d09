"""What a pod's groups shall have for what it asks for, counted as Kubernetes counts it."""

from typing import Any

import pytest
from api_pods import api_pods
from hypothesis import given
from hypothesis import strategies as st
from present import present

from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Container, Pod
from shared.core.cgroups.knobs import shares_of_millis
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import OwnLayout
from shared.core.pods.extended_resources import requests_of
from shared.core.pods.kube_pod import pod_of
from shared.core.pods.limits import GroupLimits, limits_of, pod_limits, unsaid_memory_bytes

MIB, GIB = 1 << 20, 1 << 30
LAYOUT = KubeletLayout("cgroupfs")
UNSAID = 7 * MIB
TOP = "kubepods/besteffort/podabc"
RECLAIMED = {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"}


def row(name: str, millis: int = 1000, memory: int = GIB, *, sidecar: bool = False) -> dict[str, Any]:
    amounts = {RECLAIMED_CPU: str(millis), RECLAIMED_MEMORY: str(memory)} if memory else {RECLAIMED_CPU: str(millis)}
    made = {"name": name, "resources": {"requests": amounts, "limits": amounts}}
    return made | ({"restartPolicy": "Always"} if sidecar else {})


def document(
    containers: list[dict[str, Any]], init: list[dict[str, Any]] | None = None, **spec: object
) -> dict[str, Any]:
    statuses = [{"name": one["name"], "containerID": f"containerd://{n:064x}"} for n, one in enumerate(containers)]
    others = [{"name": one["name"], "containerID": f"containerd://{n:063x}f"} for n, one in enumerate(init or [])]
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "abc", "annotations": RECLAIMED},
        "spec": {"containers": containers, "initContainers": init or [], **spec},
        "status": {"qosClass": "BestEffort", "containerStatuses": statuses, "initContainerStatuses": others},
    }


def pod(containers: list[dict[str, Any]], init: list[dict[str, Any]] | None = None, **spec: object) -> Pod:
    made = present(pod_of(document(containers, init, **spec)))
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("containers", "init", "spec", "together"),
    [
        ([row("a", 500, GIB)], [], {}, GroupLimits(512, GIB, 500)),
        ([row("a", 500, GIB), row("b", 1500, 2 * GIB)], [], {}, GroupLimits(2048, 3 * GIB, 2000)),
        ([row("a", 500, GIB), row("b", 1500, 0)], [], {}, GroupLimits(2048, GIB + UNSAID, 2000)),
        ([row("a")], [row("i", 3000, 4 * GIB)], {}, GroupLimits(3072, 4 * GIB, 3000)),
        ([row("a")], [row("i", 500, MIB)], {}, GroupLimits(1024, GIB, 1000)),
        ([row("a")], [row("i", 500, 0)], {}, GroupLimits(1024, GIB, 1000)),
        ([row("a")], [row("s", 1000, GIB, sidecar=True)], {}, GroupLimits(2048, 2 * GIB, 2000)),
        ([row("a")], [row("s", 1000, GIB, sidecar=True), row("i", 3000, 4 * GIB)], {},
         GroupLimits(4096, 5 * GIB, 4000)),
        ([row("a")], [row("i", 3000, 4 * GIB), row("s", 1000, GIB, sidecar=True)], {},
         GroupLimits(3072, 4 * GIB, 3000)),
        ([row("a")], [], {"overhead": {"memory": "128Mi", "cpu": "250m"}}, GroupLimits(1024, GIB + 128 * MIB, 1000)),
        ([row("a", 0, 0)], [], {"overhead": {"memory": "128Mi"}}, GroupLimits(2, UNSAID + 128 * MIB)),
    ],
    ids=["one", "two", "one without a limit", "a large init", "a small init", "an init without a limit", "a sidecar",
         "an init beside a sidecar", "an init before the sidecar", "overhead", "overhead beside nothing said"],
)  # fmt: skip
def test_the_pods_own_group_has_what_its_containers_have_together(
    containers: list[dict[str, Any]], init: list[dict[str, Any]], spec: dict[str, Any], together: GroupLimits
) -> None:
    assert pod_limits(pod(containers, init, **spec), UNSAID) == together


def test_every_container_that_has_an_id_has_its_own_limits_init_containers_and_sidecars_too() -> None:
    init = [row("i", 3000, 4 * GIB), row("s", 250, MIB, sidecar=True)]
    found = limits_of(pod([row("a", 500, GIB), row("b", 1000, 0)], init), LAYOUT, UNSAID)
    assert found == {
        TOP: GroupLimits(3072, 4 * GIB, 3000),
        f"{TOP}/{0:064x}": GroupLimits(512, GIB, 500),
        f"{TOP}/{1:064x}": GroupLimits(1024, UNSAID, 1000),
        f"{TOP}/{0:063x}f": GroupLimits(3072, 4 * GIB, 3000),
        f"{TOP}/{1:063x}f": GroupLimits(256, MIB, 250),
    }
    unborn = document([row("a")]) | {"status": {"qosClass": "BestEffort"}}
    assert limits_of(present(pod_of(unborn)), LAYOUT, UNSAID) == {TOP: GroupLimits(1024, GIB, 1000)}


def test_a_mirror_of_a_static_pod_has_its_group_by_the_hash_of_its_file() -> None:
    mirror = document([row("a")], nodeName="n1")
    mirror["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "n1", "controller": True}]
    mirror["metadata"]["annotations"] = RECLAIMED | {
        "kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "5" * 32,
    }  # fmt: skip
    assert {group.split("/")[2] for group in limits_of(present(pod_of(mirror)), LAYOUT, UNSAID)} == {"pod" + "5" * 32}


def test_what_a_reclaimed_pod_asked_for_is_the_most_it_gets_and_a_tenants_request_is_no_limit() -> None:
    asked = Container(name="c", memory_request_bytes=GIB)
    both = {qos: pod_limits(Pod(uid="a", name="a", qos=qos, containers=(asked,)), UNSAID).memory_bytes
            for qos in ("reclaimed_cores", "shared_cores")}  # fmt: skip
    assert both == {"reclaimed_cores": GIB, "shared_cores": None}


ROWS = st.lists(st.tuples(st.integers(0, 64_000), st.integers(1, 1 << 40), st.booleans()), max_size=4)


@given(st.lists(st.tuples(st.integers(0, 64_000), st.integers(1, 1 << 40)), min_size=1, max_size=4), ROWS)
def test_a_pod_is_limited_to_what_the_scheduler_counted_for_it(
    running: list[tuple[int, int]], starting: list[tuple[int, int, bool]]
) -> None:
    made = document(
        [row(f"c{n}", millis, memory) for n, (millis, memory) in enumerate(running)],
        [row(f"i{n}", millis, memory, sidecar=stays) for n, (millis, memory, stays) in enumerate(starting)],
    )
    asked, one = requests_of(made), present(pod_of(made))
    cpu_millis, limited = asked.get(RECLAIMED_CPU, 0), all(millis for millis, *_ in (*running, *starting))
    assert pod_limits(one, UNSAID) == GroupLimits(
        shares_of_millis(cpu_millis), asked[RECLAIMED_MEMORY], cpu_millis if limited else None
    )
    inner = [present(own.memory_bytes) for group, own in limits_of(one, LAYOUT, UNSAID).items() if group != TOP]
    assert max(inner) <= asked[RECLAIMED_MEMORY] <= sum(inner)


def test_on_a_host_the_same_pod_has_the_same_limits() -> None:
    one = pod([row("a", 500, GIB)], [row("s", 1000, MIB, sidecar=True)])
    assert next(iter(limits_of(one, OwnLayout(), UNSAID).values())) == pod_limits(one, UNSAID)
    by_name = {group.rpartition("/")[2]: own for group, own in limits_of(one, OwnLayout(), UNSAID).items()}
    assert (by_name["a"], by_name["s"]) == (GroupLimits(512, GIB, 500), GroupLimits(1024, MIB, 1000))


@given(api_pods)
def test_a_reclaimed_pod_has_a_bound_whatever_it_says(made: dict[str, Any]) -> None:
    """Also where a container says nothing, or the pod speaks for all of them (`spec.resources`)."""
    made["metadata"]["annotations"] = RECLAIMED
    one = present(pod_of(made))
    assert one.qos == "reclaimed_cores"
    limits = [own.memory_bytes for own in limits_of(one, LAYOUT, UNSAID).values()]
    assert all(limits)
    assert pod_limits(one.model_copy(update={"containers": (), "init_containers": ()}), UNSAID).memory_bytes


def test_who_says_nothing_gets_an_eighth_of_the_machine_and_never_nothing() -> None:
    assert [unsaid_memory_bytes(machine) for machine in (0, GIB, 64 * GIB)] == [256 * MIB, 256 * MIB, 8 * GIB]
