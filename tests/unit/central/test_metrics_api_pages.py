"""Pods' own pages: whose word counts for what, where a page is, and that one bad page costs its pod alone."""

from typing import Any

import pytest

from services.central.core.custom_metrics.cluster_objects import PAGE_ANNOTATION, MeteredSeen, metered_pod_of
from services.central.core.custom_metrics.figures import FUTURE_MS, page_samples
from services.central.core.custom_metrics.series import MeteredObject
from services.central.core.custom_metrics.store import MetricStore
from services.central.custom_metrics.mirrors import MetricsMirrors
from services.central.custom_metrics.pages import MOST_PAGES, PodPages
from shared.adapters.clock import SystemClock
from shared.errors import Unavailable
from shared.fakes.memory_objects import MemoryObjects

WEB = MeteredObject("pods", "d", "web")
EXTERNAL = MeteredObject(None, "d", None)
NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("line", "about", "labels"),
    [
        pytest.param('q{selector_t="a"} 1', EXTERNAL, (("pod", "web"), ("t", "a")), id="external, of its namespace"),
        pytest.param('q{namespace="d"} 1', EXTERNAL, (("pod", "web"),), id="its own namespace"),
        pytest.param('q{selector_pod="db"} 1', EXTERNAL, (("pod", "web"),), id="under no other name"),
        pytest.param('q{object="pods",object_name="web"} 1', WEB, (), id="of itself"),
        pytest.param('q{object="pods",object_name="web",namespace="d"} 1', WEB, (), id="of itself, in full"),
    ],
)
def test_a_pod_speaks_for_itself_and_its_namespace(line: str, about: MeteredObject, labels: object) -> None:
    (found,), dropped = page_samples(f"# TYPE q gauge\n{line}\n", WEB, NOW_MS, 300)
    assert (found.key.about, found.key.labels, found.timestamp_ms) == (about, labels, NOW_MS)
    assert not dropped


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param('q{namespace="e"} 1', "foreign", id="another namespace"),
        pytest.param('q{namespace=""} 1', "foreign", id="no namespace at all"),
        pytest.param('q{object="pods",object_name="db"} 1', "foreign", id="another pod"),
        pytest.param('q{object="nodes",object_name="web"} 1', "foreign", id="a node of its name"),
        pytest.param('q{object="pods",object_name="web",namespace="e"} 1', "foreign", id="a pod of its name elsewhere"),
        pytest.param(f"q 1 {NOW_MS + FUTURE_MS + 1}", "of_later", id="a time to come"),
        pytest.param("q 1 699999", "expired", id="long ago"),
        pytest.param("q NaN", "not_a_number", id="no number"),
    ],
)
def test_what_a_pod_says_of_others_is_dropped(line: str, reason: str) -> None:
    found, dropped = page_samples(f"# TYPE q gauge\n{line}\n", WEB, NOW_MS, 300)
    assert (found, dict(dropped)) == ([], {reason: 1})


def page(annotation: Any, address: str = "10.1.2.3", *, host_network: bool = False) -> str:
    meta = {"name": "web", "namespace": "d", "annotations": {PAGE_ANNOTATION: annotation}}
    found = metered_pod_of({"metadata": meta, "spec": {"nodeName": "n1", "hostNetwork": host_network},
                            "status": {"podIP": address}})  # fmt: skip
    assert found is not None
    return found.page


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        ("8080/metrics", "http://10.1.2.3:8080/metrics"),
        ("8080", "http://10.1.2.3:8080/metrics"),
        ("8080/a/b", "http://10.1.2.3:8080/a/b"),
        ("0/metrics", ""), ("65536", ""), ("8080/m?x=1", ""), ("8080@10.0.0.1", ""), ("80/a b", ""), ("x", ""),
        ("", ""), ("80/\r\nHost: a", ""), ("https://10.0.0.1", ""), ("8080//evil#", ""),
    ],
)  # fmt: skip
def test_where_a_page_is(annotation: Any, wanted: str) -> None:
    assert page(annotation) == wanted


def test_a_page_is_at_the_pods_own_address_alone() -> None:
    assert page("80", "fd00::1") == "http://[fd00::1]:80/metrics"
    assert page("80", "") == page("80", "evil.example") == page("80", host_network=True) == ""


async def test_one_page_that_cannot_be_read_costs_its_pod_alone_and_there_is_a_bound() -> None:
    mirrors, asked = MetricsMirrors(MemoryObjects(SystemClock())), list[str]()
    for number in range(MOST_PAGES + 1):
        about = MeteredObject("pods", "d", f"web-{number:04d}")
        mirrors._index(str(number), MeteredSeen(about, "n1", {}, f"http://{number}"))

    async def read(address: str) -> str:
        asked.append(address)
        if address == "http://0":
            raise Unavailable("nobody answers", reason="page")
        return "# TYPE q gauge\nq 1\n"

    store = MetricStore()
    await PodPages(store, mirrors, read, SystemClock(), keep_s=300).read_all()
    assert len(asked) == MOST_PAGES
    assert store.samples == MOST_PAGES - 1
