"""Pod documents as an API server may hold them: every field that its validation lets through, odd as it may be."""

from typing import Any

from hypothesis import strategies as st

from shared.core.cgroups.kubelet_layout import CONFIG_HASH, CONFIG_MIRROR, CONFIG_PREFIX
from shared.core.pods.qos import DOMAIN, QOS_LEVEL

NODE = "n1"
_dns = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
_subdomain = st.lists(_dns, min_size=1, max_size=4).map(".".join)
_words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_some_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)
_label = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?)?", fullmatch=True)
_quantity = st.sampled_from(
    ["0", "1", "100m", "1500m", "1n", "2k", "12E", "1e3", "2E6", "1Ki", "9223372036854775807", "16Ei", ".5", "1.5Gi"]
)
_resource = st.sampled_from(
    ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", f"{DOMAIN}reclaimed_millicpu",
     f"resource.{DOMAIN}reclaimed_memory", "kubernetes.io/batch-cpu", "koordinator.sh/batch-memory"]
)  # fmt: skip
_amounts = st.dictionaries(_resource, _quantity, max_size=4)
_resources = st.fixed_dictionaries({}, optional={"requests": _amounts, "limits": _amounts, "claims": st.just([])})
_keys = st.sampled_from(
    [QOS_LEVEL, f"{DOMAIN}cpu_enhancement", f"{CONFIG_PREFIX}source", f"{CONFIG_PREFIX}seen", CONFIG_MIRROR,
     CONFIG_HASH, "koordinator.sh/eviction-priority", "kubectl.kubernetes.io/last-applied-configuration"]
)  # fmt: skip
_annotations = st.dictionaries(_keys, _words | st.sampled_from(["reclaimed_cores", "file", "5" * 32]), max_size=5)
_labels = st.dictionaries(st.sampled_from(["app", "koordinator.sh/qosClass"]), _label, max_size=2)
_owner = st.fixed_dictionaries(
    {
        "apiVersion": st.sampled_from(["v1", "apps/v1", "x.example/v1"]),
        "kind": st.sampled_from(["Job", "Node", "DaemonSet", "x/y"]) | _some_words,
        "name": st.just(NODE) | _some_words,
        "uid": _some_words,
    }
)


def _controlled(owners: list[dict[str, Any]], first: bool) -> list[dict[str, Any]]:
    """At most one owner is the controller."""
    return [owner | {"controller": first and index == 0} for index, owner in enumerate(owners)]


_owners = st.builds(_controlled, st.lists(_owner, max_size=3), st.booleans())
_container = st.fixed_dictionaries({"name": _dns}, optional={"resources": _resources})
_init = st.fixed_dictionaries({"name": _dns}, optional={"resources": _resources, "restartPolicy": st.just("Always")})
_status = st.fixed_dictionaries({"name": _dns}, optional={"containerID": _words, "ready": st.booleans()})
_metadata = st.fixed_dictionaries(
    {"uid": st.uuids().map(str), "namespace": _dns, "name": _subdomain},
    optional={
        "annotations": _annotations,
        "labels": _labels,
        "ownerReferences": _owners,
        "deletionTimestamp": st.just("2026-01-01T00:00:00Z"),
        "deletionGracePeriodSeconds": st.integers(0, 2**63 - 1),
    },
)
_spec = st.fixed_dictionaries(
    {"containers": st.lists(_container, min_size=1, max_size=3), "nodeName": st.just(NODE)},
    optional={
        "initContainers": st.lists(_init, max_size=2),
        "ephemeralContainers": st.lists(_container, max_size=1),
        "priority": st.integers(-(2**31), 2**31 - 1),
        "priorityClassName": _dns,
        "overhead": _amounts,
        "resources": _resources,
        "terminationGracePeriodSeconds": st.integers(0, 2**63 - 1),
    },
)
_pod_status = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
        "qosClass": st.sampled_from(["Guaranteed", "Burstable", "BestEffort"]),
        "containerStatuses": st.lists(_status, max_size=2),
        "initContainerStatuses": st.lists(_status, max_size=2),
    },
)
api_pods: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"metadata": _metadata, "spec": _spec, "status": _pod_status}
)
"""Documents of pods of one node."""
