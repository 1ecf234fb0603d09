"""Recordings of a cluster: what was decided is decided anew, by the same parts of central."""

import gzip
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from decisions_world import BEGAN, SOON, ClusterStory, anew, batch_pod, read, uid_of, workload
from typer.testing import CliRunner, Result

from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason
from shared.errors import Refused
from sublet.commands import replay
from sublet.replay.decisions.difference import MAX_DIFFERENCES, differences
from sublet.replay.decisions.frames import RecordedObject
from sublet.replay.decisions.recording import ClusterWriter, relevant
from sublet.replay.decisions.report import document, table
from sublet.replay.decisions.run import DecisionsOutcome

Run = Callable[..., Result]
"""Runs the command with these arguments."""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    app = typer.Typer()
    app.command()(replay.replay)

    def invoke(data: bytes, *arguments: object) -> Result:
        path = tmp_path / "a.gz"
        path.write_bytes(data)
        return CliRunner().invoke(app, [str(path), *(str(argument) for argument in arguments)])

    return invoke


def recommended(decided: Decided | None = None) -> bytes:
    """Ten minutes of a workload, and at the end what was decided."""
    story = ClusterStory()
    workload(story)
    for number in range(40):
        story.uses(1.0 + number % 3, 200)
        story.wait(15)
    if decided is not None:
        story.decided(decided)
    return story.close()


def placed(decided: Decided | None, *, offer: int = 1000) -> DecisionsOutcome:
    """Two nodes, of which the first offers so much, and a pod that asks for 400m."""
    story = ClusterStory()
    for name in ("node1", "node2"):
        story.see("Node", name, {"status": {"allocatable": {"cpu": "10", "memory": "10Gi"}}})
    story.offer(offer)
    story.offer(300, "node2")
    story.see("Pod", "b1", batch_pod(400), "team")
    story.wait(1)
    if decided is not None:
        story.decided(decided)
    return anew(story.close())


def answer(verdict: str, *why: Reason) -> Decided:
    about = DecidedObject(kind="pod", namespace="team", name="b1", uid=uid_of("Pod", "b1"))
    return Decided(area="scheduling", about=about, verdict=verdict, why=why)


def lacking(node: str, left: int) -> Reason:
    numbers: dict[str, Any] = {
        "node": node, "resource": "resource.katalyst.kubewharf.io/reclaimed_millicpu", "asked": 400, "left": left,
        "offered": left,
    }  # fmt: skip
    return Reason(rule="reclaimed_fit", numbers=numbers)


def test_what_nobody_said_is_decided_at_the_end() -> None:
    (row,) = anew(recommended()).rows
    assert row.recorded is None
    assert row.replayed is not None
    assert row.replayed.verdict == "recommended"
    assert row.at_s == 585.0


def test_a_recommendation_comes_out_the_same() -> None:
    first = anew(recommended()).rows[0].replayed
    outcome = anew(recommended(first))
    assert outcome.counts == {("recommendation", "same"): 1}
    assert outcome.rows[0].differences == ()


def test_a_figure_that_is_another_one_is_named_with_both_values() -> None:
    first = anew(recommended()).rows[0].replayed
    assert first is not None
    changed = first.why[0].model_copy(update={"numbers": {**first.why[0].numbers, "cpu_target": 1}})
    (row,) = anew(recommended(first.model_copy(update={"why": (changed,)}))).rows
    target = first.why[0].numbers["cpu_target"]
    assert row.differences == (f"90th percentile and buffer main: cpu_target: recorded 1, now {target}",)


def test_another_verdict_is_named() -> None:
    about = DecidedObject(kind="resourcerecommend", namespace="shop", name="web")
    (row,) = anew(recommended(Decided(area="recommendation", about=about, verdict="not_recommended"))).rows
    assert row.differences[0] == "verdict: recorded not_recommended, now recommended"


def test_a_checkpoint_in_the_recording_is_where_history_begins() -> None:
    def first_frames(text: str) -> bytes:
        story = ClusterStory()
        workload(story)
        owner = {"ownerReferences": [{"uid": uid_of("ResourceRecommend", "web")}]}
        story.see("UsageCheckpoint", "web", {"metadata": owner, "spec": {"usage": text}}, "shop")
        story.uses(1.0, 200)
        story.wait(60)
        story.uses(1.0, 200)
        return story.close()

    at_s = BEGAN.timestamp() - 7200
    histogram = {"at_s": at_s, "heaviest": 1.0, "parts": {"50": 10000}}
    known = {"cpu": histogram, "memory": histogram, "cpu_samples": 100, "first_s": at_s - 7200, "last_s": at_s}
    (row,) = anew(first_frames(json.dumps({"containers": {"main": known}}))).rows
    assert row.replayed is not None
    assert row.replayed.verdict == "recommended"
    assert float(row.replayed.why[0].numbers["confidence_days"] or 0) > 0.05
    (row,) = anew(first_frames("no JSON")).rows
    assert row.replayed is not None
    assert float(row.replayed.why[0].numbers["confidence_days"] or 0) < 0.01


def test_a_placement_is_held_against_the_nodes_that_were_named() -> None:
    outcome = placed(answer("let_onto", lacking("node2", 300)))
    (row,) = outcome.rows
    assert row.replayed is not None
    assert row.replayed.verdict == "refused"  # node2 alone was named
    assert row.replayed.why == (lacking("node2", 300),)
    same = placed(answer("let_onto", lacking("node2", 300), Reason(rule="fits", numbers={"node": "node1"})))
    assert same.rows[0].replayed is not None
    assert same.rows[0].replayed.verdict == "let_onto"


def test_a_refusal_by_another_offer_is_named() -> None:
    (row,) = placed(answer("refused", lacking("node1", 100)), offer=200).rows
    assert row.differences == (
        "reclaimed_fit node1 resource.katalyst.kubewharf.io/reclaimed_millicpu: left: recorded 100, now 200",
        "reclaimed_fit node1 resource.katalyst.kubewharf.io/reclaimed_millicpu: offered: recorded 100, now 200",
    )


def test_room_that_was_answered_for_is_gone_for_the_next_pod() -> None:
    story = ClusterStory()
    story.see("Node", "node1", {"status": {"allocatable": {"cpu": "10", "memory": "10Gi"}}})
    story.offer(700)
    for name in ("b1", "b2"):
        story.see("Pod", name, batch_pod(400), "team")
        story.wait(0.1)
        about = DecidedObject(kind="pod", namespace="team", name=name, uid=uid_of("Pod", name))
        story.decided(Decided(area="scheduling", about=about, verdict="let_onto"))
    first, second = anew(story.close()).rows
    assert first.differences == ()
    assert second.replayed is not None
    assert second.replayed.verdict == "refused"
    assert second.replayed.why[0].numbers["left"] == 300


def test_a_pod_that_is_seen_on_its_node_before_its_decision_does_not_stand_in_its_own_way() -> None:
    story = ClusterStory()
    story.see("Node", "node1", {"status": {"allocatable": {"cpu": "10", "memory": "10Gi"}}})
    story.offer(400)
    there = batch_pod(400)
    there["spec"]["nodeName"] = "node1"
    story.see("Pod", "b1", there, "team")
    story.decided(answer("let_onto"))
    story.see("Pod", "b2", batch_pod(400), "team")
    about = DecidedObject(kind="pod", namespace="team", name="b2", uid=uid_of("Pod", "b2"))
    story.decided(Decided(area="scheduling", about=about, verdict="refused"))
    first, second = anew(story.close()).rows
    assert first.replayed is not None
    assert second.replayed is not None
    assert (first.replayed.verdict, second.replayed.verdict) == ("let_onto", "refused")


def test_an_over_committed_node_is_decided_anew() -> None:
    story = ClusterStory()
    labels = {"katalyst.kubewharf.io/overcommit_node_pool": "web"}
    story.see("Node", "node1", {"metadata": {"labels": labels}, "status": {"allocatable": {"cpu": "10"}}})
    spec = {"nodeOvercommitSelectorVal": "web", "resourceOvercommitRatio": {"cpu": "2"}}
    story.see("NodeOvercommitConfig", "twice", {"spec": spec})
    story.wait(1)
    story.decided(Decided(area="overcommit", about=DecidedObject(kind="node", name="node1"), verdict="none"))
    row, config = anew(story.close()).rows
    assert row.replayed is not None
    assert config.replayed is not None
    assert str(config.replayed.about) == "nodeovercommitconfig/twice"
    assert row.replayed.verdict == "waits_for_kubelet"
    assert row.differences[0] == "verdict: recorded none, now waits_for_kubelet"


def test_a_tide_pool_is_decided_anew() -> None:
    story = ClusterStory()
    story.see("TideNodePool", "night", {"spec": {}})
    story.wait(1)
    story.decided(Decided(area="tide", about=DecidedObject(kind="tidenodepool", name="night"), verdict="worked"))
    (row,) = anew(story.close()).rows
    assert row.replayed is not None
    assert row.replayed.area == "tide"
    assert row.differences[0].startswith("verdict: recorded worked, now ")


@pytest.mark.parametrize(
    ("decided", "why"),
    [
        (answer("gated"), "nothing in the reco"),
        (Decided(area="astrology", about=DecidedObject(kind="pod", name="x"), verdict="x"), "of astrology are not"),
        (Decided(area="tide", about=DecidedObject(kind="tidenodepool", name="x"), verdict="x"), "nothing in the reco"),
        (
            Decided(area="scheduling", about=DecidedObject(kind="pod", name="gone", uid="f"), verdict="refused"),
            "pod/gone is not in the recording yet",
        ),
    ],
)
def test_what_cannot_be_decided_anew_is_said(decided: Decided, why: str) -> None:
    outcome = placed(decided)
    (row,) = outcome.rows
    assert row.replayed is None
    assert why in row.why_not
    assert outcome.total("not_replayed") == 1


def test_objects_that_go_are_gone() -> None:
    story = ClusterStory()
    workload(story)
    story.uses(1.0, 200)
    story.wait(90)
    story.uses(1.0, 200)
    story.see("ResourceRecommend", "web", None)
    story.wait(1)
    assert all(key != ("recommendation", "only_now") for key in anew(story.close(), SOON).counts)


def test_many_differences_are_counted() -> None:
    before = answer("refused", *(lacking(f"n{number}", 1) for number in range(20)))
    found = differences(before, answer("refused"))
    assert len(found) == MAX_DIFFERENCES + 1
    assert found[-1] == f"{20 - MAX_DIFFERENCES} more"


def test_the_same_recording_gives_the_same_bytes() -> None:
    data = recommended(answer("refused"))
    one, other = (document(anew(data), "a", read(data).faults) for _ in range(2))
    assert json.dumps(one) == json.dumps(other)
    assert table(one) == table(other)
    assert recommended(answer("refused")) == data


def test_a_recording_is_decided_anew_by_the_command(run: Run) -> None:
    first = anew(recommended()).rows[0].replayed
    result = run(recommended(first), "-o", "json")
    found = json.loads(result.stdout)
    # The command follows the usual settings: a day of use is needed.
    assert found["areas"]["recommendation"]["different"] == 1
    assert found["decisions"][0]["replayed"]["verdict"] == "not_recommended"
    assert result.exit_code == 1
    shown = run(recommended(first))
    assert "recommendation: 1 different" in shown.stdout
    assert "verdict: recorded recommended, now not_recommended" in shown.stdout


def test_decisions_that_are_the_same_end_with_0(run: Run) -> None:
    result = run(recommended())
    assert result.exit_code == 0
    assert "1 said only now" in result.stdout


def test_the_metrics_api_answers_as_it_would_have_when_the_recording_ends(run: Run) -> None:
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/container_cpu_usage"
    result = run(recommended(), "--ask", path, "--ask", "/apis/custom.metrics.k8s.io/v1beta2/nodes/x/nothing")
    assert f"{path}: 200" in result.stdout
    assert "Pod/shop/web-5d4b7-abcde/container_cpu_usage: 1" in result.stdout
    assert "/nodes/x/nothing: 404" in result.stdout
    (one, _) = json.loads(run(recommended(), "--ask", path, "--ask", path, "-o", "json").stdout)["answers"]
    assert (one["path"], one["status"], len(one["body"]["items"])) == (path, 200, 1)


@pytest.mark.parametrize("path", ["/healthz", "gossip", "/apis/" + "x" * 3000, "/apis/\x1b[31m"])
def test_a_question_that_is_no_path_is_refused(run: Run, path: str) -> None:
    assert "--ask" in str(run(recommended(), "--ask", path).exception)


def test_a_question_wants_a_recording_of_a_cluster(run: Run) -> None:
    shipped = Path(__file__).parents[3] / "examples/traces/web-and-batch.jsonl.gz"
    assert "want a recording of a cluster" in str(run(shipped.read_bytes(), "--ask", "/apis/x").exception)


def test_an_empty_recording_says_so(run: Run) -> None:
    result = run(ClusterStory().close())
    assert result.exit_code == 0
    assert "no decision is in it" in result.stdout


def test_what_is_broken_costs_no_more_than_itself() -> None:
    lines = gzip.decompress(recommended()).splitlines()
    lines[2:2] = [
        b"[]",
        b'{"t": 0.0, "kind": "Secret", "uid": "x", "object": {"metadata": {}}}',
        b'{"t": 0.0, "message": "gossip", "body": {}}',
        b'{"t": 0.0, "message": "offer", "body": {"node": "NO"}}',
        b'{"t": -1, "kind": "Pod", "uid": "x", "object": null}',
        b'{"t": 0.0, "kind": "Pod", "uid": "x", "object": {"metadata": {"uid": "y", "name": "z"}}}',
        b'{"t": 0.0, "kind": "Pod", "uid": "x", "object": {"metadata": {"uid": "x", "name": "z"}, "spec": 7}}',
    ]
    lines[-1:-1] = [b'{"t": 3.0, "kind": "Pod", "uid": "x", "object": null}']
    recording = read(b"\n".join(lines) + b"\n")
    assert len(list(recording.frames)) == len(lines) - 10
    told = [word.split(": ", 2)[2] for word in recording.faults.refused]
    assert told == [
        "no JSON object",
        "kind 'Secret': want one of Node, CustomNodeResource, NodeMetric, UsageCheckpoint, NodeOvercommitConfig, "
        "TideNodePool, Deployment, ResourceRecommend, Pod, HorizontalPodAutoscaler, ServiceProfileDescriptor, "
        "KatalystVerticalPodAutoscaler, VerticalPodAutoscaler",
        "message 'gossip': want one of offer, figures, decision",
        told[3],
        "t: -1: want seconds since the start, 0 to 1e+09",
        "Pod x: metadata: want the same uid, and a name",
        "Pod x: spec: want a map",
        "out of order: t 3 s after 585 s",
    ]
    assert told[3].startswith("offer: ")


def test_a_recording_that_is_cut_is_used_as_far_as_it_goes() -> None:
    recording = read(recommended()[:-40])
    assert list(recording.frames)
    assert "no end line" in " ".join(recording.faults.notes) or recording.faults.lost_frames


@pytest.mark.parametrize(
    ("head", "word"),
    [
        (b"", "does not say so"),
        (b'{"sublet": "recording", "v": 1}', "does not say so"),
        (b'{"sublet": "cluster recording", "v": 2}', "of version 2"),
        (b'{"sublet": "cluster recording", "v": 1}', "wants a time with its zone"),
        (b'{"sublet": "cluster recording", "v": 1, "at": "2026-01-30T12:00:00"}', "wants a time with its zone"),
        (b'{"sublet": "cluster recording", "v": 1, "at": "9999-01-30T12:00:00Z"}', "wants a time with its zone"),
    ],
)
def test_what_is_no_recording_of_a_cluster_is_refused(head: bytes, word: str) -> None:
    with pytest.raises(Refused, match=word):
        read(head + b"\n")


def test_secrets_of_containers_are_not_recorded() -> None:
    """What a container is started with may be anybody's password: none of it decides anything."""
    secret = "hunter2"
    container = {"name": "main", "env": [{"name": "P", "value": secret}], "args": [secret], "image": secret}
    spec = {"containers": [container], "initContainers": [container], "volumes": [{"name": secret}]}
    meta = {
        "name": "x",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": secret},
        "managedFields": secret,
    }
    pod = {"metadata": meta, "spec": spec, "status": {}}
    deployment = {"metadata": meta, "spec": {"template": {"metadata": meta, "spec": spec}}}
    for kind, given in (("Pod", pod), ("Deployment", deployment)):
        assert secret not in json.dumps(relevant(kind, given))


def test_a_recording_gives_back_what_was_seen_and_heard() -> None:
    story = ClusterStory()
    story.see("Node", "node1", {"status": {"images": ["much"], "allocatable": {"cpu": "10"}}})
    story.wait(2.5)
    story.offer(700)
    story.decided(answer("refused"))
    seen, offer, decision = list(read(story.close()).frames)
    assert isinstance(seen.what, RecordedObject)
    assert seen.what.document is not None
    assert seen.what.document["status"] == {"allocatable": {"cpu": "10"}}
    assert (offer.at_s, offer.now) == (2.5, story.now)
    assert decision.what.model_dump()["verdict"] == "refused"  # type: ignore[union-attr]


def test_a_writer_takes_no_more_than_it_may() -> None:
    writer = ClusterWriter(io.BytesIO(), datetime(2026, 1, 1, tzinfo=UTC), max_bytes=1)
    assert not writer.see(0.0, "Pod", "x", None)
    assert writer.frames == 0
