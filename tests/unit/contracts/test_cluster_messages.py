"""What a node says to the whole cluster: columns of one length, rows as they were put in, small enough for the hub."""

import json
from typing import Any

import pytest
from example_cluster_messages import heard_round, node_cpus, node_offer, pod_figures
from example_messages import ENVELOPE

from shared.contracts.cluster.cpus import CpuMap
from shared.contracts.cluster.figures import (
    MAX_FIGURES_BYTES,
    FiguredContainers,
    FiguredPods,
    FigureRow,
    PodFigures,
)
from shared.contracts.cluster.heard import HeardRound
from shared.contracts.cluster.offer import MAX_OFFER_BYTES, MAX_PODS, NodeOffer, PodUsed, PodUses, ResourceAmounts
from shared.contracts.envelope import Message
from shared.errors import Refused

NODE = ENVELOPE["node"]


def changed(message: Message, *path: str | int, to: Any) -> bytes:
    """The message with another value at one place."""
    document = json.loads(message.encode())
    here = document
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = to
    return json.dumps(document).encode()


def test_pods_come_back_row_by_row() -> None:
    (pod,) = NodeOffer.decode(node_offer(ENVELOPE).encode()).pods.rows()
    used = ResourceAmounts(cpu_millis=1500)
    assert pod == PodUsed("1f3a-5b", "team-a", "encode", "shared_cores", prod=True, used=used)


def test_figures_come_back_with_their_labels_and_without_what_is_not_known() -> None:
    here, pod = {"node_name": NODE}, {"qos_level": "shared_cores", "pool": "share"}
    assert list(PodFigures.decode(pod_figures(ENVELOPE).encode()).rows()) == [
        FigureRow("nodes", "", NODE, here, {"node_cpu_usage": 3.5}),
        FigureRow("nodes", "", NODE, here | {"numa": "0"}, {"numa_memory_usage": 1}),
        FigureRow("nodes", "", NODE, here | {"numa": "1"}, {"numa_memory_usage": 2}),
        FigureRow("nodes", "", NODE, here | {"pool": "share"}, {"node_advisor_pool_load_1min": 2.5}),
        FigureRow("pods", "team-a", "encode", here | pod, {"pod_cpu_usage": 1.5}),
        FigureRow("pods", "team-a", "encode", here | pod | {"container": "main"}, {"container_cpu_usage": 1.5}),
    ]


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("pods", "names"), []),
        (("pods", "names"), ["a", "b"]),
        (("pods", "names"), ["../etc"]),
        (("pods", "cpu_millis"), [-1]),
        (("pods", "qos"), ["royal"]),
        (("numas",), [{"numa": place} for place in range(65)]),
        (("reclaimed", "cpu_millis"), -5),
        (("node",), "A B"),
    ],
)
def test_an_offer_that_cannot_be_true_is_refused_whole(path: tuple[str, ...], to: Any) -> None:
    with pytest.raises(Refused):
        NodeOffer.decode(changed(node_offer(ENVELOPE), *path, to=to))


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("pods", "series", "pod_cpu_usage"), []),
        (("pods", "series", "Pod-Usage"), [1]),
        (("pods", "series", "pod_cpu_usage"), ["many"]),
        (("pods", "series", "pod_cpu_usage"), [-1]),
        (("pods", "series"), {f"s{number}": [1] for number in range(65)}),
        (("pods", "labels", "app"), ["x" * 64]),
        (("pods", "labels", "a b"), ["x"]),
        (("containers", "pods"), [1]),
        (("containers", "names"), ["main", "side"]),
        (("numas", "names"), ["0"]),
        (("node_series", "node_cpu_usage"), None),
    ],
)
def test_figures_that_cannot_be_true_are_refused_whole(path: tuple[str, ...], to: Any) -> None:
    with pytest.raises(Refused):
        PodFigures.decode(changed(pod_figures(ENVELOPE), *path, to=to))


def test_one_container_of_no_pod_among_others_is_refused_whole() -> None:
    columns = {"pods": [0, 1], "names": ["main", "side"], "series": {}}
    with pytest.raises(Refused, match="a container of pod 1, there are 1"):
        PodFigures.decode(changed(pod_figures(ENVELOPE), "containers", to=columns))


@pytest.mark.parametrize("more", [[], [1, 1]], ids=["shorter", "longer"])
@pytest.mark.parametrize("column", ["sockets", "numas", "l3s", "cores", "busy_percent"])
def test_cpus_with_a_column_of_another_length_are_refused_whole(column: str, more: list[int]) -> None:
    message = node_cpus(ENVELOPE)
    assert CpuMap.decode(message.encode()) == message
    with pytest.raises(Refused, match="rows for 2 CPUs"):
        CpuMap.decode(changed(message, "table", column, to=[0, *more]))


@pytest.mark.parametrize("rows", [0, 2], ids=["shorter", "longer"])
@pytest.mark.parametrize("column", ["boot_ids", "seqs", "sent_ms", "age_ms"])
def test_nodes_heard_with_a_column_of_another_length_are_refused_whole(column: str, rows: int) -> None:
    message = heard_round(ENVELOPE)
    assert HeardRound.decode(message.encode()) == message
    (value,) = getattr(message.nodes[0], column)
    with pytest.raises(Refused, match="rows for 1 nodes"):
        HeardRound.decode(changed(message, "nodes", 0, column, to=[value] * rows))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_no_figure_is_no_number(value: str) -> None:
    text = pod_figures(ENVELOPE).encode().replace(b"3.5", value.encode())
    with pytest.raises(Refused):
        PodFigures.decode(text)


def test_more_pods_than_a_node_can_have_are_refused() -> None:
    rows = range(MAX_PODS + 1)
    with pytest.raises(ValueError, match="512"):
        PodUses(uids=tuple(f"{n:x}" for n in rows), namespaces=("a",) * len(rows), names=("a",) * len(rows))


def test_a_full_node_stays_below_what_the_hub_takes() -> None:
    """250 pods of two containers, with names as long as a Deployment's and two labels of an operator's choice."""
    count = 250
    names = tuple(f"checkout-service-7c9f8d6b5c-{number:05d}" for number in range(count))
    namespaces = tuple(f"team-{number % 20}-production" for number in range(count))
    uids = tuple(f"6f0c0d9e-6a0c-5c3b-9f0e-{number:012x}" for number in range(count))
    offer = NodeOffer(**ENVELOPE, pods=PodUses(
        uids=uids, namespaces=namespaces, names=names, qos=("reclaimed_cores",) * count, prod=(False,) * count,
        cpu_millis=(12345,) * count, memory_bytes=(12345678901,) * count,
    ))  # fmt: skip
    figures = PodFigures(
        **ENVELOPE, measured_at="2026-01-02T03:04:04Z", period_s=15.0,
        pods=FiguredPods(
            uids=uids, namespaces=namespaces, names=names,
            labels={"qos_level": ("reclaimed_cores",) * count, "pool": ("reclaim",) * count,
                    "app.kubernetes.io/name": ("checkout-service",) * count, "tier": ("backend",) * count},
            series={f"pod_some_figure_{number}": (12.345678,) * count for number in range(12)},
        ),
        containers=FiguredContainers(
            pods=tuple(range(count)) * 2, names=("istio-proxy",) * 2 * count,
            series={f"pod_some_figure_{number}": (12345678901,) * 2 * count for number in range(6)},
        ),
    )  # fmt: skip
    assert len(offer.encode()) < 40_000 < MAX_OFFER_BYTES
    assert len(figures.encode()) < 200_000 < MAX_FIGURES_BYTES
