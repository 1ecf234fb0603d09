"""The explanation of one pod, and eviction events as lines."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml
from present import present

from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import RefusedMessage
from shared.contracts.bus.subjects import event_subject
from shared.contracts.eviction import EvictionEvent
from shared.ports import Received
from sublet.terminal.formats import EVENTS
from sublet.views import events as view
from sublet.views.explain.chain import chain
from sublet.views.explain.chain_text import lines
from sublet.views.facts import read

FORMATS = (*EVENTS.kinds, "jsonpath={.pod} {.message}{.detail}")
TABLE = EVENTS.read("table")
RUNNING = """\
pod default/encode  reclaimed_cores  Running  uid bb
  runs on CPUs 0-10,12-21 of pool reclaim (0-10,12-21,24-34,36-45), memory limit 190.0 GiB
  by alloc/12 applied, mode enforce, lease 10 s
  because advice/7 of policy canonical (from sample/88): reclaim 42, share 6 CPUs; tenants require 1.05
    offers 42.00 cores and 180.0 GiB to reclaimed pods
    regulate: reserve_cores 4, required_cores 1.05
  newest sample/88 (period): the pod uses CPU 1.25, load1 -, memory -
    share: CPU 1.00, load1 1.05, memory 1.0 GiB
    reclaim: CPU 1.25, load1 -, memory -
advisor does not answer: its part is not known"""

EVICTED = """\
pod default/gone is not on this node any more
eviction 00000000-0000-0000-0000-000000000000  succeeded
  reclaimed-resource-pressure-eviction-plugin, scope katalyst.kubewharf.io/reclaimed_millicpu: \
observed 36.00 cores, threshold 20.00 cores, grace 30 s
    over-commit: offered 4000, threshold 5
  2026-01-01T12:00:00.250Z  intended   Intend to evict
  2026-01-01T12:00:01.250Z  created    Successfully create eviction
  waits in the outbox: 00000000-0000-0000-0000-000000000000/succeeded/1
advisor does not answer: its part is not known"""


@pytest.mark.parametrize(("name", "text"), [("encode", RUNNING), ("gone", EVICTED)])
def test_the_chain_of_a_running_and_of_an_evicted_pod(
    answers: dict[str, Any], events: list[EvictionEvent], name: str, text: str
) -> None:
    document = present(chain(read("node1", answers), events, "default", name))
    assert "\n".join(lines(document)) == text
    assert json.loads(json.dumps(document)) == document


TERMS = {"capacity": 8000, "margin": 3200, "system": 200, "reserved": 200,
         "pods_used": 59, "pods_requested": 2000, "pods_larger": 2000}  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("usage", "capacity 8.00 - margin 3.20 - system 0.20 - pods used 0.06"),
        ("maxUsageRequest", "capacity 8.00 - margin 3.20 - system 0.20 - pods larger 2.00"),
    ],
)
def test_a_reclaimed_pod_is_told_what_batch_resources_its_node_offers(
    answers: dict[str, Any], policy: str, words: str
) -> None:
    terms = TERMS | {"policy": policy, "amount": 4541}
    batch = {"cpu_millis": 4541, "memory_bytes": 1 << 30, "cpu": terms, "memory": terms | {"policy": "request"}}
    answers["reporter"]["batch"] = batch | {"cpu_normalization_ratio": 1.2, "unread": ["node/reservation: no"]}
    document = present(chain(read("node1", answers), [], "default", "encode"))
    text = "\n".join(lines(document))
    assert f"node offers kubernetes.io/batch-cpu 4541: {policy}, {words}\n" in text
    assert "node offers kubernetes.io/batch-memory 1073741824: request, capacity" in text
    assert "1.2 times as fast" in text
    assert "not read: node/reservation: no" in text
    of_tenant = present(chain(read("node1", answers), [], "default", "web"))
    assert "batch" not in of_tenant


def test_a_mid_pod_is_told_what_mid_resources_its_node_offers(answers: dict[str, Any]) -> None:
    terms = {"capacity": 8000, "prod_reclaimable": 1500, "unallocated": 1000, "unused": 4000, "at_most": 8000}
    mid = {"cpu_millis": 1600, "memory_bytes": 1 << 30, "cpu": terms, "memory": terms, "mode": "prediction",
           "unallocated_percent": 10, "known_pods": 3, "new_pods": 1}  # fmt: skip

    def told(**over: Any) -> str:
        answers["reporter"]["mid"] = mid | over
        facts = read("node1", answers)
        assert facts.sample is not None
        pods = tuple(
            one.model_copy(update={"pod": one.pod.model_copy(update={"priority": 7500})})
            if one.pod.name == "web"
            else one
            for one in facts.sample.pods
        )
        seen = replace(facts, sample=facts.sample.model_copy(update={"pods": pods}))
        assert "mid" not in present(chain(seen, [], "default", "encode"))
        return "\n".join(lines(present(chain(seen, [], "default", "web"))))

    text = told()
    assert "node offers kubernetes.io/mid-cpu 1600: prediction, prod pods lend 1.50 + 10 % of 1.00 that nobody" in text
    assert "at most 4.00 unused and 8.00 in all" in text
    assert "known for long enough: 3, for too short: 1" in text
    assert "static, a fixed part of 8.00, at most" in told(mode="static")
    assert "mid-cpu" not in told(mode="other")


def test_a_pod_is_told_what_its_quotas_are_and_why(answers: dict[str, Any]) -> None:
    facts = read("node1", answers)
    assert facts.sample is not None
    uid = next(one.pod.uid for one in facts.sample.pods if one.pod.name == "web")
    row = {"uid": uid, "container": "c", "limit_millis": 1000, "quota_millis": 1200, "most_millis": 3000,
           "throttled_ratio": 0.25, "held_s": 41.5, "budget_left_s": 30.0}  # fmt: skip
    still = row | {"container": "d", "quota_millis": 1000, "throttled_ratio": None, "budget_left_s": None}

    def told(pod: str, *rows: Any) -> str:
        answers["qrm"]["quota_burst"] = {"share_pool": "idle", "containers": list(rows)}
        return "\n".join(lines(present(chain(read("node1", answers), [], "default", pod))))

    text = told("web", row, still)
    assert (
        "quota of c: 1200 milli-cores, from 1000 to 3000; throttled in 25 % of its periods, share pool idle, "
        "held for 42 s, budget left for 30 s\n" in text
    )
    assert "quota of d: 1000 milli-cores, from 1000 to 3000; throttled: not known, share pool idle\n" in text
    assert "quota of" not in told("encode", row, still)
    assert "quota of" not in told("web", {"uid": uid})


@pytest.mark.parametrize("bad", [{}, [], "x", {"cpu_millis": "4541"}, {"cpu": TERMS}])
def test_terms_of_another_shape_are_not_told(answers: dict[str, Any], bad: Any) -> None:
    answers["reporter"]["batch"] = bad
    assert "batch" not in present(chain(read("node1", answers), [], "default", "encode"))


def test_a_pod_nobody_knows_has_no_chain(answers: dict[str, Any], events: list[EvictionEvent]) -> None:
    assert chain(read("node1", answers), events, "default", "stranger") is None
    assert chain(read("node1", answers), events, "other", "encode") is None


def test_an_eviction_is_explained_from_the_stream_when_the_evictor_is_silent(
    answers: dict[str, Any], events: list[EvictionEvent]
) -> None:
    document = present(chain(read("node1", answers | {"evictor": None}), events, "default", "gone"))
    (eviction,) = document["evictions"]
    assert (eviction["observed"], eviction["threshold"]) == (36_000, 20_000)
    assert [phase["phase"] for phase in eviction["phases"]] == ["intended", "created"]


@pytest.mark.parametrize("service", ["qrm", "evictor", "reporter"])
def test_the_chain_is_told_as_far_as_it_is_known(answers: dict[str, Any], service: str) -> None:
    document = present(chain(read("node1", answers | {service: None}), [], "default", "encode"))
    text = "\n".join(lines(document))
    assert f"{service} does not answer: its part is not known" in text
    assert ("where: not known" in text) is (service == "qrm")


def test_a_pod_that_qrm_has_not_placed_yet_is_in_no_pool(answers: dict[str, Any]) -> None:
    answers["qrm"]["allocation"]["pods"] = []
    assert "in no pool yet (alloc/12 applied" in "\n".join(
        lines(present(chain(read("node1", answers), [], "default", "encode")))
    )


def message(event: EvictionEvent, sequence: int = 7) -> Received:
    return Received(event_subject(event), event.encode(), event_headers(event), sequence)


def shown(event: EvictionEvent, output: str) -> str:
    line = view.line(message(event), EVENTS.read(output))
    assert isinstance(line, str)
    return line


def test_an_event_in_the_table_shows_phase_pod_and_numbers(events: list[EvictionEvent]) -> None:
    assert view.line(message(events[1]), TABLE) == (
        "     7   2026-01-01T12:00:01.250Z   created     default/gone                        36.00 cores    "
        "20.00 cores   Successfully create eviction"
    )


def test_an_event_as_json_carries_its_place_in_the_stream(events: list[EvictionEvent]) -> None:
    document = json.loads(shown(events[0], "json"))
    assert (document["stream_sequence"], document["phase"], document["pod"]) == (7, "intended", "gone")


def test_an_event_as_a_cloudevent_has_the_attributes_and_the_data(events: list[EvictionEvent]) -> None:
    document = json.loads(shown(events[0], "cloudevents"))
    assert document["specversion"] == "1.0"
    assert document["id"] == events[0].event_id
    assert document["type"] == "io.sublet.eviction.intended.v1"
    assert document["subject"] == "default/gone"
    assert document["data"]["pod_uid"] == "cc"


def test_an_event_in_yaml_is_a_document_of_its_own(events: list[EvictionEvent]) -> None:
    text = shown(events[0], "yaml")
    assert text.startswith("---\n")
    assert yaml.safe_load(text) == json.loads(shown(events[0], "json"))


def test_an_event_by_name_by_template_and_with_its_rule(events: list[EvictionEvent]) -> None:
    event = events[0]
    assert shown(event, "name") == f"event/{event.event_id}"
    assert shown(event, "jsonpath={.namespace}/{.pod} {.phase}") == "default/gone intended"
    assert f"   {event.plugin}   " in shown(event, "wide")


@pytest.mark.parametrize("output", FORMATS)
def test_a_message_that_is_no_event_is_refused(output: str) -> None:
    refused = view.line(Received("sublet.x", b"{}", {}, 1), EVENTS.read(output))
    assert isinstance(refused, RefusedMessage)
    assert "CloudEvent" in str(refused)


def test_no_control_character_of_an_event_reaches_the_terminal(events: list[EvictionEvent]) -> None:
    hostile = events[1].model_copy(update={"message": "\x1b]0;owned\x07\u202e", "detail": "\x9b31m"})
    for output in FORMATS:
        assert shown(hostile, output).replace("\n", "").isprintable()


def test_an_event_from_before_the_asked_moment_is_left_out(events: list[EvictionEvent]) -> None:
    event = events[1]
    assert view.line(message(event), TABLE, begin=event.sent_at)
    assert view.line(message(event), TABLE, begin=event.sent_at + timedelta(seconds=1)) == ""
