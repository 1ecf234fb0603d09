"""Chart and kustomize of deploy/k8s: one source, and a real API server takes what they render."""

import subprocess
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_rig.cluster import Cluster, CommandError

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

K8S = Path(__file__).parents[2] / "deploy/k8s"
CHART = K8S / "chart"

_spec = spec_from_file_location("render", K8S / "render.py")
assert _spec is not None
assert _spec.loader is not None
render = module_from_spec(_spec)
_spec.loader.exec_module(render)

Document = dict[str, Any]


def by_name(text: str) -> dict[tuple[str, str, str], Document]:
    found = [document for document in yaml.safe_load_all(text) if document]
    return {(d["kind"], d["metadata"].get("namespace", ""), d["metadata"]["name"]): d for d in found}


def hook_of(document: Document) -> str:
    """When Helm applies it by itself; "" where it is part of what is installed."""
    return str((document["metadata"].get("annotations") or {}).get("helm.sh/hook", ""))


def helm_template(cluster: Cluster, *words: str) -> str:
    return str(render.template(str(cluster.programs["helm"]), *words))


@pytest.fixture(scope="module")
def system(cluster: Cluster) -> Iterator[str]:
    """The namespace that the manifests want, and the kinds of which they speak."""
    phases = {one["metadata"]["name"]: one["status"]["phase"] for one in cluster.get("namespaces")["items"]}
    there = phases.get("sublet-system") == "Active"
    if not there:
        cluster.wait_gone("namespace/sublet-system")
        cluster.kubectl("create", "namespace", "sublet-system")
    yield "sublet-system"
    if not there:
        cluster.kubectl("delete", "namespace", "sublet-system", "--wait=false")


def test_what_is_committed_is_what_the_chart_renders(cluster: Cluster) -> None:
    words = {name: ("--values", str(CHART / f"values-{name}.yaml")) for name in render.OVERLAYS}
    files = render.written({name: helm_template(cluster, *asked) for name, asked in words.items()})
    assert files == {path: (K8S / path).read_text() for path in files}


@pytest.mark.parametrize("overlay", render.OVERLAYS)
def test_kustomize_and_helm_render_the_same(cluster: Cluster, overlay: str) -> None:
    chart = by_name(helm_template(cluster, "--include-crds", "--values", str(CHART / f"values-{overlay}.yaml")))
    ours = by_name(cluster.kubectl("kustomize", str(K8S / "overlays" / overlay)))
    namespace = ("Namespace", "", "sublet-system")
    secret = ("Secret", "sublet-system", "sublet-bus")
    hooks = {key: hook for key, d in chart.items() if (hook := hook_of(d))}
    extra = {namespace, secret} if overlay == "demo" else {namespace}
    assert {key: d for key, d in chart.items() if key not in hooks} == {
        key: d for key, d in ours.items() if key not in extra
    }
    assert {key for key, hook in hooks.items() if hook == "pre-install,pre-upgrade"} == {
        (kind, "sublet-system", "sublet-check") for kind in ("ConfigMap", "Job")
    }
    assert {name for (_, _, name), hook in hooks.items() if hook == "test"} == {"sublet-test"}
    uninstall = by_name(cluster.kubectl("kustomize", str(K8S / "uninstall"))).keys() - {namespace}
    assert {key for key, hook in hooks.items() if hook == "post-delete"} == uninstall
    assert set(hooks.values()) == {"pre-install,pre-upgrade", "test", "post-delete"}


@pytest.mark.parametrize("overlay", render.OVERLAYS)
def test_the_api_server_takes_every_object(cluster: Cluster, system: str, overlay: str) -> None:
    folder = K8S / "overlays" / overlay
    said = cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--kustomize", str(folder)
    )
    rendered = by_name(cluster.kubectl("kustomize", str(folder)))
    assert len(said.splitlines()) == len(rendered)


def test_the_api_server_takes_what_an_uninstall_does(cluster: Cluster, system: str) -> None:
    said = cluster.kubectl("apply", "--server-side", "--dry-run=server", "--kustomize", str(K8S / "uninstall"))
    assert "job.batch/sublet-uninstall" in said


def test_helm_finds_nothing_to_say(cluster: Cluster) -> None:
    assert "0 chart(s) failed" in cluster.helm("lint", "--strict", str(CHART), "--kube-version", render.KUBE_VERSION)


def containers_of(document: Document) -> list[Document]:
    """Of the pods that an object makes."""
    spec = document.get("spec", {}).get("template", document).get("spec", {})
    return [*spec.get("initContainers", ()), *spec.get("containers", ())]


EACH_HALF = "image.name=all,image.node.name=node,image.central.name=central"
DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("values", "node", "central"),
    [
        ("image.name=all", "all:9", "all:9"),
        ("image.name=all,image.node.name=node", "node:9", "all:9"),
        (EACH_HALF, "node:9", "central:9"),
        (f"{EACH_HALF},image.digest={DIGEST}", "node:9", "central:9"),
        (f"{EACH_HALF},image.central.digest={DIGEST}", "node:9", f"central@{DIGEST}"),
    ],
)
def test_each_half_has_its_image_and_the_bus_a_nodes(cluster: Cluster, values: str, node: str, central: str) -> None:
    parts = "profiles.enabled=true,scheduling.enabled=true,metricsApi.enabled=true,page.enabled=true"
    words = ("--set", parts, "--set", values, "--set-string", "image.tag=9")
    found = by_name(helm_template(cluster, *words))
    assert found
    for (kind, _, name), document in found.items():
        for one in containers_of(document):
            if "kube-scheduler" not in one["image"]:
                wanted = node if kind == "DaemonSet" or one["name"] == "bus" else central
                assert (name, one["name"], one["image"]) == (name, one["name"], wanted)


BAD = [
    ("bus.replicas=2", "bus.replicas"),
    ("central.replicas=0", "central.replicas"),
    ("image.tagg=1", "tagg"),
    ("image.digest=sha256:12", "image.digest"),
    (f"image.node.digest={DIGEST}", "image.node"),
    ("image.central.tag=1", "image.central"),
    ("image.pullPolicy=Sometimes", "image.pullPolicy"),
    ("node.logLevel=loud", "node.logLevel"),
    ("node.stateDir=here", "node.stateDir"),
    ("node.maxUnavailable=200%", "node.maxUnavailable"),
    ("scheduler.image=kube-scheduler", "scheduler.image"),
    ("admission.olderNames=maybe", "admission.olderNames"),
    ("settings.evicter.plugins=x", "evicter"),
    ("priorityClass.value=2000000000", "priorityClass.value"),
    ("bus.storage=much", "bus.storage"),
    ("bus.storage=2Gx", "bus.storage"),
    ("node.resources.requests.cpu=-1", "node.resources.requests.cpu"),
    ("central.resources.limits.memory=1X", "central.resources.limits.memory"),
    ("mode=enforced", "mode"),
    ("config.mode=dry-run", "config.mode"),
    ("config.advisor.polcy=x", "polcy"),
    ("settings.evictor.cooling_s=-1", "settings.evictor.cooling_s"),
    ("config.evictor.plugins.cpu_load.mode=bad", "config.evictor.plugins.cpu_load.mode"),
]


@pytest.mark.parametrize(("value", "named"), BAD, ids=[value for value, _ in BAD])
def test_a_wrong_value_is_refused_by_its_name(cluster: Cluster, value: str, named: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        helm_template(cluster, "--set", value)
    said = refusal.value.stderr
    assert "values don't meet the specifications of the schema" in said
    assert named in said.replace("/", ".")


SWITCHES = [
    ("scheduler.enabled=false", "sublet-scheduler"),
    ("events.enabled=false", "sublet-events"),
    ("networkPolicy.enabled=false", "kind: NetworkPolicy"),
    ("admission.enabled=false", "kind: ValidatingAdmissionPolicy"),
    ("bus.makePasswords=false,bus.makeCertificate=false", "kind: Secret"),
    ("admission.olderNames=accept", "is the older name"),
]


@pytest.mark.parametrize(("value", "gone"), SWITCHES, ids=[value for value, _ in SWITCHES])
def test_what_is_switched_off_is_not_rendered(cluster: Cluster, value: str, gone: str) -> None:
    assert gone in helm_template(cluster)
    assert gone not in helm_template(cluster, "--set", value)


def test_a_digest_wins_over_a_tag_and_every_image_follows_its_value(cluster: Cluster) -> None:
    digest = f"sha256:{'0' * 64}"
    images = f"image.name=own/sublet,image.digest={digest},bus.image=own/nats:1,scheduler.image=own/scheduler:2"
    found = {
        line.split("image: ")[1] for line in helm_template(cluster, "--set", images).splitlines() if " image: " in line
    }
    assert found == {f"own/sublet@{digest}", "own/nats:1", "own/scheduler:2"}


def test_agents_may_patch_pods_where_that_is_asked_for_and_bounded_alone(cluster: Cluster) -> None:
    def verbs(*words: str) -> set[str]:
        rules = by_name(helm_template(cluster, *words))["ClusterRole", "", "sublet-node"]["rules"]
        return {verb for rule in rules if "pods" in rule["resources"] for verb in rule["verbs"]}

    asked = ("--set", "settings.reporter.resource_status=true")
    assert (verbs(), verbs(*asked)) == ({"get", "list", "watch"}, {"get", "list", "watch", "patch"})
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        verbs(*asked, "--set", "admission.enabled=false")
    assert "enable admission, or leave resource_status out" in refusal.value.stderr


def test_the_older_names_are_rewritten_where_the_api_server_can(cluster: Cluster) -> None:
    served = ("--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
    assert "kind: MutatingAdmissionPolicy" not in helm_template(cluster)
    assert "kind: MutatingAdmissionPolicy" in helm_template(cluster, *served)
    assert "kind: MutatingAdmissionPolicy" not in helm_template(
        cluster, *served, "--set", "admission.olderNames=refuse"
    )


def test_the_passwords_are_made_once(cluster: Cluster, system: str) -> None:
    """An upgrade that made new ones would lock out whoever has not been restarted."""
    words = (
        "--namespace",
        system,
        "--show-only",
        "templates/bus/passwords.yaml",
        "--dry-run=server",
        "--kube-version",
        render.KUBE_VERSION,
    )
    first, second = (cluster.helm("template", "sublet", str(CHART), *words) for _ in range(2))
    assert first != second
    made = by_name(first)["Secret", system, "sublet-bus"]
    cluster.apply(made)
    try:
        again = by_name(cluster.helm("template", "sublet", str(CHART), *words))["Secret", system, "sublet-bus"]
        assert again["data"] == made["data"]
    finally:
        cluster.kubectl("delete", "secret", "sublet-bus", "--namespace", system)


def test_what_is_no_release_of_kubernetes_that_is_supported_is_refused(cluster: Cluster) -> None:
    with pytest.raises(CommandError, match="incompatible with Kubernetes"):
        cluster.helm("template", "sublet", str(CHART), "--kube-version", "1.29.0")
