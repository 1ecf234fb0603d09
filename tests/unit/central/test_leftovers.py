"""What each part of the cluster's half leaves is taken away once it is off, whatever fails or is written meanwhile."""

from collections.abc import Mapping
from typing import Any

import pytest
from kube_api import Api, FakeKube

from services.central.adapters.https.serving_secret import SECRETS
from services.central.adapters.recommendation.recommend_objects import USAGE_CHECKPOINTS
from services.central.core.clock_bounds.autoscaler import AUTOSCALERS, PLAIN, STATUS, Kept
from services.central.core.clock_bounds.schedule import SCHEDULE
from services.central.core.overcommit.amounts import Amounts
from services.central.core.overcommit.node_documents import figure_texts
from services.central.core.profiles.capacity_gate import GATE
from services.central.core.scheduling.cluster.node_documents import REFUSES
from services.central.core.service_profiles.descriptor import DESCRIPTORS, MADE_LABEL, NAME
from services.central.core.vertical.stock_vpa import APPLIED_SAID, STOCK_VPAS
from shared.adapters.clock import LoopClock
from shared.contracts.kube.overcommit import realtime_ratio_key, set_ratio_key
from shared.core.api_kind import CONFIG_MAPS, NODES, PODS
from shared.errors import Unavailable
from sublet.cluster.leftovers.parts import PARTS, clear_parts
from sublet.cluster.switched_off import SWITCHES, SwitchedOff, clear_switched_off

SYSTEM, OTHER = "sublet-system", {"name": "example.org/quota"}
Document = dict[str, Any]


async def cleared(api: Api, *parts: str) -> list[str]:
    said: list[str] = []
    await clear_parts(FakeKube(api), SYSTEM, parts, said.append)
    return said


def annotated(**annotations: str) -> Document:
    return {"metadata": {"annotations": annotations}}


def gated(api: Api, name: str, *gates: Mapping[str, str]) -> str:
    path = PODS.path(name, "team")
    api.put(path, {"metadata": {"namespace": "team"}, "spec": {"nodeName": "", "schedulingGates": list(gates)}})
    return path


async def test_pods_are_let_go_and_the_gates_of_others_stay() -> None:
    api = Api()
    alone, both = gated(api, "a", {"name": GATE}), gated(api, "b", OTHER, {"name": GATE})
    foreign = gated(api, "c", OTHER)
    assert len(await cleared(api, "gate")) == 2
    assert "schedulingGates" not in api.objects[alone]["spec"]
    assert api.objects[both]["spec"]["schedulingGates"] == [OTHER]
    assert api.objects[foreign]["spec"]["schedulingGates"] == [OTHER]
    assert await cleared(api, "gate") == []


async def test_what_somebody_writes_meanwhile_is_kept() -> None:
    api = Api()
    path = gated(api, "a", {"name": GATE}, OTHER)
    api.before_write = lambda: void(gated(api, "a", {"name": GATE}))
    await cleared(api, "gate")
    assert "schedulingGates" not in api.objects[path]["spec"], (
        "the other gate has gone meanwhile, and does not come back"
    )


def void(_: object) -> None:
    """Forget a value."""


async def test_one_that_cannot_be_written_is_named_and_holds_up_no_other() -> None:
    api = Api()
    first, second = gated(api, "a", {"name": GATE}), gated(api, "b", {"name": GATE})
    api.put(NODES.path("n1"), annotated(**{REFUSES: "cpu in use"}))
    api.refuse[("PATCH", first)] = 403
    with pytest.raises(Unavailable, match=r"gate: 1 pods could not be written: team/a: .*run it again"):
        await cleared(api, "gate", "scheduling")
    assert "schedulingGates" not in api.objects[second]["spec"]
    assert not api.objects[NODES.path("n1")]["metadata"]["annotations"]


async def test_nodes_keep_no_word_of_the_extender_and_its_secret_goes() -> None:
    api = Api()
    api.put(NODES.path("n1"), annotated(**{REFUSES: "cpu in use", "mine": "1"}))
    for name in ("sublet-extender-tls", "sublet-bus-tls"):
        api.put(SECRETS.path(name, SYSTEM), {})
    assert len(await cleared(api, "scheduling")) == 2
    assert api.objects[NODES.path("n1")]["metadata"]["annotations"] == {"mine": "1"}
    assert SECRETS.path("sublet-bus-tls", SYSTEM) in api.objects
    assert SECRETS.path("sublet-extender-tls", SYSTEM) not in api.objects


@pytest.mark.parametrize("dies", [False, True])
async def test_an_over_committed_node_shows_kubelets_figures_again(dies: bool) -> None:
    api, own = Api(), Amounts(3800, 4000)
    said = {**figure_texts("original", {"cpu": own}), **figure_texts("overcommit", {"cpu": Amounts(7600, 8000)})}
    said |= {set_ratio_key("cpu"): "2", realtime_ratio_key("cpu"): "2", "mine": "1"}
    status = {"allocatable": {"cpu": "7600m", "memory": "1Gi"}, "capacity": {"cpu": "8", "memory": "1Gi"}}
    path = NODES.path("n1")
    api.put(path, {**annotated(**said), "status": status})
    if dies:  # between its two writes
        api.refuse[("PATCH", path)] = 500
        with pytest.raises(Unavailable):
            await cleared(api, "overcommit")
        api.refuse.clear()
        assert set_ratio_key("cpu") in api.objects[path]["metadata"]["annotations"]
    await cleared(api, "overcommit")
    assert api.objects[path]["metadata"]["annotations"] == {"mine": "1"}
    assert api.objects[path]["status"] == {
        "allocatable": {"cpu": "3800m", "memory": "1Gi"},
        "capacity": {"cpu": "4", "memory": "1Gi"},
    }


async def test_autoscalers_have_their_own_bounds_again_and_those_of_others_stay() -> None:
    api, kept = Api(), Kept((1, 4), (3, 9))
    ours = annotated(**{SCHEDULE: "{}", PLAIN: kept.text, STATUS: "in force"})
    for name, bounds in (("ours", (3, 9)), ("edited", (5, 6))):
        ours["metadata"]["namespace"] = "team"
        api.put(AUTOSCALERS.path(name, "team"), {**ours, "spec": {"minReplicas": bounds[0], "maxReplicas": bounds[1]}})
    await cleared(api, "clock-bounds")
    found = {name: api.objects[AUTOSCALERS.path(name, "team")] for name in ("ours", "edited")}
    assert found["ours"]["spec"] == {"minReplicas": 1, "maxReplicas": 4}
    assert found["edited"]["spec"] == {"minReplicas": 5, "maxReplicas": 6}
    assert all(one["metadata"]["annotations"] == {SCHEDULE: "{}"} for one in found.values())


async def test_descriptors_that_central_made_go_with_their_names_on_pods() -> None:
    api = Api()
    for name, labels in (("made", {MADE_LABEL: "uid"}), ("written", {})):
        api.put(DESCRIPTORS.path(name, "team"), {"metadata": {"namespace": "team", "labels": labels}})
        about = {"namespace": "team", "annotations": {NAME: name}}
        api.put(PODS.path(f"of-{name}", "team"), {"metadata": about, "spec": {}})
    await cleared(api, "service-profiles")
    assert DESCRIPTORS.path("made", "team") not in api.objects
    assert DESCRIPTORS.path("written", "team") in api.objects
    left = {
        name: api.objects[PODS.path(f"of-{name}", "team")]["metadata"]["annotations"] for name in ("made", "written")
    }
    assert left == {"made": {}, "written": {NAME: "written"}}


async def test_checkpoints_certificates_and_words_go() -> None:
    api = Api()
    api.put(USAGE_CHECKPOINTS.path("web", "team"), {"metadata": {"namespace": "team"}})
    api.put(SECRETS.path("sublet-metrics-api-tls", SYSTEM), {})
    api.put(SECRETS.path("sublet-webhook-tls", SYSTEM), {})
    said = annotated(**{APPLIED_SAID: "Applied"})
    said["metadata"]["namespace"] = "team"
    api.put(STOCK_VPAS.path("web", "team"), said)
    assert len(await cleared(api, *PARTS)) == 4
    assert list(api.objects) == [STOCK_VPAS.path("web", "team")]
    assert await cleared(api, *PARTS) == []


def deployment(api: Api, *, updated: int, observed: int = 1) -> None:
    status = {"observedGeneration": observed, "replicas": 2, "updatedReplicas": updated}
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/sublet-central"
    labels = {"app.kubernetes.io/name": "sublet"}
    api.put(path, {"metadata": {"labels": labels}, "spec": {"replicas": 2}, "status": status})


async def switched_off(api: Api, wait_s: float = 0) -> None:
    await clear_switched_off(FakeKube(api), LoopClock(), SwitchedOff(SYSTEM, ["gate"], wait_s), void)


@pytest.mark.parametrize(("updated", "observed"), [(1, 1), (2, 0)])
async def test_nothing_is_taken_while_a_process_runs_with_the_settings_of_before(updated: int, observed: int) -> None:
    api = Api()
    path = gated(api, "a", {"name": GATE})
    deployment(api, updated=updated, observed=observed)
    with pytest.raises(Unavailable, match=r"settings of before after 0 s in sublet-system: sublet-central"):
        await switched_off(api)
    assert api.objects[path]["spec"]["schedulingGates"]
    deployment(api, updated=2)
    await switched_off(api)
    assert "schedulingGates" not in api.objects[path]["spec"]


async def test_a_part_stands_as_off_until_all_of_it_is_taken_away() -> None:
    api, switches = Api(), CONFIG_MAPS.path(SWITCHES, SYSTEM)
    api.put(switches, {"data": {"gate": "off", "tide": "on"}})
    path = gated(api, "a", {"name": GATE})
    api.refuse[("PATCH", path)] = 403
    with pytest.raises(Unavailable):
        await switched_off(api)
    assert api.objects[switches]["data"] == {"gate": "off", "tide": "on"}
    api.refuse.clear()
    await switched_off(api)
    assert api.objects[switches]["data"] == {"tide": "on"}
