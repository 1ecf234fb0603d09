"""A cluster's recording is somebody else's file: whatever its objects and messages are, `sublet replay` goes on past
them, in words and within bounds.
"""

import contextlib
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_documents import odd_documents

from services.central.settings import KubernetesSettings
from shared.contracts.cluster.decision import Decided, DecidedObject, Decision
from shared.errors import SubletError
from sublet.replay.decisions import objects as recorded_objects
from sublet.replay.decisions.frames import KINDS
from sublet.replay.decisions.reading import read_cluster_recording
from sublet.replay.decisions.recording import ClusterWriter
from sublet.replay.decisions.report import document, table
from sublet.replay.decisions.run import DecisionsOutcome, replay_decisions

pytestmark = pytest.mark.timeout(300)

HEAD = b'{"sublet":"cluster recording","v":1,"at":"2026-01-30T12:00:00+00:00"}\n'
BEGAN = datetime(2026, 1, 30, 12, 0, tzinfo=UTC)
WORDS = (b"", b"NaN", b"-1", b"1e300", b"9" * 5000, b"\x00", b"\xff", b'"', b"{}", b"[" * 3000, b"null", b"true")
COUNT = 300
AREAS = ("scheduling", "overcommit", "tide", "recommendation", "clock_bounds", "service_profiles", "vertical")


def decided_anew(content: bytes) -> DecisionsOutcome | None:
    """What becomes of it; only words of ours come out."""
    with contextlib.suppress(SubletError):
        recording = read_cluster_recording("a", io.BytesIO(content))
        outcome = replay_decisions(recording, KubernetesSettings())
        assert table(document(outcome, "a", recording.faults))
        return outcome
    return None


def decision_about(kind: str, area: str, seq: int) -> Decision:
    about = DecidedObject(kind=kind.lower(), namespace="a", name="x", uid="u")
    body = Decided(area=area, about=about, verdict="refused").model_dump()
    return Decision(node="central", boot_id="0" * 16, seq=seq, sent_at=BEGAN, **body)


def whole_object(kind: str) -> dict[str, Any]:
    """One with most of what any kind has."""
    requests = {"resource.katalyst.kubewharf.io/reclaimed_millicpu": "400", "cpu": "1"}
    containers = [{"name": "main", "resources": {"requests": requests, "limits": requests}}]
    schedule = {"timeBounds": [{"bounds": [{"cronTab": "* * * * *", "minReplicas": 3}]}]}
    meta = {
        "name": "x", "namespace": "a", "uid": "u", "labels": {"a": "b", "pod-template-hash": "h"},
        "annotations": {"sublet.io/replica-schedule": json.dumps(schedule), "spd.katalyst.kubewharf.io/enable": "true"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"kind": "ReplicaSet", "name": "x-h", "uid": "r"}],
    }  # fmt: skip
    spec = {
        "containers": containers, "nodeName": "x", "taints": [{"key": "a", "effect": "NoSchedule"}],
        "template": {"spec": {"containers": containers}}, "targetRef": {"kind": "Deployment", "name": "x"},
        "usage": "{}", "nodeOvercommitSelectorVal": "a", "resourceOvercommitRatio": {"cpu": "2"},
        "nodeConfigs": {"nodeSelector": {"a": "b"}}, "tolerations": [{"key": "a"}], "minReplicas": 1, "maxReplicas": 9,
        "updatePolicy": {"podUpdatingStrategy": "Inplace"}, "baselinePercent": 50,
        "resourcePolicy": {"containerPolicies": [{"containerName": "*"}]},
        "businessIndicator": [{"name": "latency", "indicators": [{"indicatorLevel": "UpperBound", "value": 1}]}],
        "schedulingGates": [{"name": "sublet.io/wait-for-capacity"}],
    }  # fmt: skip
    status = {"allocatable": {"cpu": "4"}, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": meta, "spec": spec, "status": status, "kind": kind}


@pytest.mark.parametrize("kind", [kind.kind for kind in KINDS])
def test_no_object_ends_a_replay(kind: str) -> None:
    first = [{"t": 0, "kind": one.kind, "uid": "u", "object": whole_object(one.kind)} for one in KINDS]
    lines = [HEAD.decode().rstrip(), *map(json.dumps, first)]
    for number, (_, odd) in enumerate(odd_documents([whole_object(kind)], COUNT, seed=1)):
        if isinstance(meta := odd.get("metadata"), dict):
            meta |= {"uid": "u", "name": "x"}
        lines.append(json.dumps({"t": 1 + number, "kind": kind, "uid": "u", "object": odd}))
        if number % 50 == 0:
            for area in AREAS:
                body = decision_about(kind, area, number + 1).model_dump(mode="json")
                lines.append(json.dumps({"t": 1 + number, "message": "decision", "body": body}))
    outcome = decided_anew("\n".join(lines).encode(errors="replace") + b"\n")
    assert outcome is not None
    assert outcome.frames > COUNT // 2
    assert sum(outcome.counts.values()) >= COUNT // 50 * len(AREAS)


@given(
    slips=st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(WORDS)), max_size=4),
    cut=st.none() | st.integers(0, 10_000),
)
def test_no_slip_makes_more_than_a_refusal(slips: list[tuple[int, bytes]], cut: int | None) -> None:
    lines = [{"t": n, "kind": kind.kind, "uid": "u", "object": whole_object(kind.kind)} for n, kind in enumerate(KINDS)]
    text = HEAD + b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b'{"end":true}\n'
    for place, word in slips:
        at = place % len(text)
        text = text[:at] + word + text[at + 1 :]
    decided_anew(text[:cut])


def test_more_objects_than_any_cluster_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_objects, "MAX_OBJECTS", 10)
    out = io.BytesIO()
    writer = ClusterWriter(out, BEGAN)
    for number in range(30):
        writer.see(0.0, "Pod", f"u{number}", {"metadata": {"name": "x", "namespace": "a", "uid": f"u{number}"}})
    writer.close()
    recording = read_cluster_recording("a", io.BytesIO(out.getvalue()))
    replay_decisions(recording, KubernetesSettings())
    assert recording.faults.refused_frames == 20
    assert "more than 10 objects at a time" in recording.faults.refused[0]
