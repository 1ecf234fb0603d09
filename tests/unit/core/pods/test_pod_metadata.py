"""What is kept of a pod's annotations, labels and containers: known, read by somebody, and bounded."""

import ast
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from present import present

from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.pods.containers import MOST_CONTAINERS
from shared.core.pods.kube_pod import pod_of
from shared.core.pods.limits import limits_of
from shared.core.pods.metadata import ANNOTATION_BYTES, LABELS_BYTES, LABELS_READ, bounded
from shared.core.pods.qos import DOMAIN

ROOT = Path(__file__).parents[4]
MOST_POD_BYTES = 16 << 10
SERVICES = ("advisor", "evictor", "metrics", "qrm", "reporter")
READERS = [
    *(ROOT / "shared/core").rglob("*.py"),
    *(path for name in SERVICES for path in (ROOT / "services" / name).rglob("*.py")),
]
ANNOTATIONS = ("annotations", "said")
CPU = f"{DOMAIN}cpu_enhancement"


def keys_read(field: str, names: tuple[str, ...]) -> set[str]:
    """Every key that the services look up in a mapping of this name, as its module writes it."""
    found = set()
    for path in READERS:
        where = str(path.relative_to(ROOT))
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            for key in looked_up(node, names):
                module = importlib.import_module(where.removesuffix(".py").replace("/", "."))
                try:
                    value = eval(compile(ast.Expression(key), where, "eval"), vars(module))
                except NameError:  # a key that is itself a variable: what it goes over is one of the constants
                    continue
                if isinstance(value, str) and "/" in value:
                    found.add(value)
    assert found, f"no reader of {field}: the search is broken"
    return found


def looked_up(node: ast.AST, names: tuple[str, ...]) -> list[ast.expr]:
    def is_ours(one: ast.expr) -> bool:
        return (isinstance(one, ast.Attribute) and one.attr in names) or (isinstance(one, ast.Name) and one.id in names)

    match node:
        case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, *_]) if is_ours(of):
            return [key]
        case ast.Subscript(value=of, slice=key) if is_ours(of):
            return [key]
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[of]) if is_ours(of):
            return [key]
    return []


def test_every_annotation_that_a_reader_looks_up_is_kept() -> None:
    enhancements = {f"{DOMAIN}{name}_enhancement" for name in ("cpu", "memory", "network")}
    assert keys_read("annotations", ANNOTATIONS) | enhancements <= ANNOTATION_BYTES.keys()


def test_every_label_that_a_reader_looks_up_is_kept() -> None:
    assert keys_read("labels", ("labels",)) <= set(LABELS_READ)


def test_a_value_that_is_too_long_counts_as_not_said_and_the_pod_says_so() -> None:
    words = bounded({CPU: "x" * 600, "corp.example/notes": "y" * 250_000, f"{DOMAIN}numa_ids": "0,1"}, {})
    assert words.annotations == {f"{DOMAIN}numa_ids": "0,1"}
    assert words.unread == (f"annotation {CPU}: 602 bytes, at most 512 are read",)


def test_labels_known_by_name_come_first_and_the_rest_has_a_bound() -> None:
    many = {f"a{number:04}": "v" * 60 for number in range(7500)}
    words = bounded({}, {**many, LABELS_READ[0]: "BE"})
    assert words.labels[LABELS_READ[0]] == "BE"
    assert 10 < len(words.labels) < 20
    assert sum(len(key) + len(value) + 2 for key, value in words.labels.items()) <= LABELS_BYTES
    assert "of 7501 labels" in words.unread[0]


TEXT = st.text(max_size=20) | st.sampled_from(["\x01" * 600, "é" * 300, "x" * 5000, '"' * 400])
NAME = st.from_regex(r"\A[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z")
WORDS = st.dictionaries(st.sampled_from(sorted(ANNOTATION_BYTES)) | TEXT, TEXT, max_size=30)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Pods of any size, in the shape of the API server."""
    count = draw(st.sampled_from([1, 2, MOST_CONTAINERS, MOST_CONTAINERS + 1, 300]))
    names = [f"{'c' * draw(st.sampled_from([1, 58]))}{number}" for number in range(count)]
    amounts = draw(st.sampled_from([{}, {"cpu": "1500m", "memory": "1Gi"}, {"cpu": "9E", "memory": "7Ei"}]))
    rows = [{"name": name, "resources": {"requests": amounts, "limits": amounts}} for name in names]
    statuses = [{"name": name, "containerID": "containerd://" + "a" * 64} for name in names]
    labels = draw(WORDS) | {f"{'l' * 240}{number}": "v" * 63 for number in range(draw(st.integers(0, 50)))}
    return {
        "metadata": {"uid": "0f-1", "namespace": "n" * 63, "name": "p" * 253, "annotations": draw(WORDS),
                     "labels": labels, "ownerReferences": [{"controller": True, "kind": "K" * 63, "name": "o" * 253}]},
        "spec": {"containers": rows, "initContainers": draw(st.sampled_from([[], rows[:1]]))},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }  # fmt: skip


@given(documents())
@settings(max_examples=100, deadline=None)
def test_law_a_pods_encoding_has_a_bound_whatever_its_author_wrote(document: dict[str, Any]) -> None:
    pod = present(pod_of(document))
    assert pod is not None
    assert len(pod.model_dump_json(exclude_defaults=True)) < MOST_POD_BYTES


def many(count: int, **changed: Any) -> dict[str, Any]:
    amounts = {"requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {"memory": "2Mi"}}
    rows = [{"name": f"c{number}", "resources": amounts} for number in range(count)]
    rows[-1] |= changed
    return {"metadata": {"uid": "0f-1", "namespace": "default", "name": "web"}, "spec": {"containers": rows},
            "status": {"phase": "Running", "qosClass": "Burstable"}}  # fmt: skip


def test_of_too_many_containers_one_stands_for_all_and_its_group_is_the_pods() -> None:
    pod, layout = present(pod_of(many(300))), KubeletLayout("cgroupfs")
    (whole,) = pod.containers
    assert (pod.as_one, whole.name, whole.cpu_request_millis) == (True, "c0", 30_000)
    assert (whole.memory_request_bytes, whole.memory_limit_bytes) == (300 << 20, 600 << 20)
    assert layout.container_group(pod, whole) == layout.pod_group(pod)
    assert list(limits_of(pod, layout, 1 << 30)) == [layout.pod_group(pod)]


def test_one_container_without_a_limit_leaves_all_without() -> None:
    pod = present(pod_of(many(300, resources={})))
    assert pod.containers[0].memory_limit_bytes == 0
    assert pod.cpu_request_millis == 29_900


@pytest.mark.parametrize("count", [1, MOST_CONTAINERS])
def test_a_pod_of_a_usual_size_is_described_container_by_container(count: int) -> None:
    pod = present(pod_of(many(count)))
    assert (len(pod.containers), pod.as_one, json.loads(pod.model_dump_json(exclude_defaults=True)).get("unread")) == (
        count,
        False,
        None,
    )
