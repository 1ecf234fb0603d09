"""Recording a cluster: what comes is written, in its order; what cannot be read is left out."""

import asyncio
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from decisions_world import BEGAN, read
from typer.testing import CliRunner

from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import DECISIONS_STREAM, STREAMS, decision_subject, state_subject
from shared.contracts.cluster.decision import DecidedObject, Decision
from shared.contracts.cluster.offer import NodeOffer
from shared.core.api_kind import NODES, PODS
from shared.errors import Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.ports import DurableMessage
from sublet.commands import record
from sublet.replay.decisions import recorder as recording
from sublet.replay.decisions.frames import RecordedObject
from sublet.replay.decisions.recorder import ClusterRecorder
from sublet.replay.decisions.recording import ClusterWriter
from sublet.replay.traces.recorder import Ending, RecordingEnd

(SPEC,) = (spec for spec in STREAMS if spec.name == DECISIONS_STREAM)
ENVELOPE = {"boot_id": "0" * 16, "sent_at": datetime(2026, 1, 30, tzinfo=UTC)}


def decision(seq: int) -> Decision:
    about = DecidedObject(kind="node", name="node1")
    return Decision(node="central", seq=seq, area="overcommit", about=about, verdict="as_set", **ENVELOPE)


async def store(bus: MemoryBus, one: Decision) -> None:
    subject = decision_subject(one.area, one.about)
    await bus.publish_durable(DurableMessage(subject, one.encode(), f"id-{one.seq}"))


async def recorded(max_bytes: int | None = None) -> tuple[Ending, bytes, ClusterRecorder]:
    """A node and a pod, a decision from before, an offer, one that is none, a decision; then told to stop."""
    clock, stop, out = SystemClock(), asyncio.Event(), io.BytesIO()
    bus, objects = MemoryBus(clock=clock), MemoryObjects(clock)
    await bus.ensure_stream(SPEC)
    await store(bus, decision(1))
    objects.put(NODES, {"metadata": {"name": "node1", "uid": "n1"}})
    writer = ClusterWriter(out, BEGAN, max_bytes=max_bytes)
    recorder = ClusterRecorder(writer, clock)
    work = asyncio.ensure_future(
        recorder.record(bus, recorder.mirrors(objects), RecordingEnd(stop), lambda progress: None)
    )

    async def until(frames: int) -> None:
        while writer.frames < frames and not work.done():
            await asyncio.sleep(0.01)

    await until(1)
    offer = NodeOffer(node="node1", seq=1, **ENVELOPE)
    while writer.frames < 2 and not work.done():
        # Until somebody listens.
        await bus.publish(state_subject(NodeOffer, "node1"), offer.encode())
        await asyncio.sleep(0.01)
    await bus.publish(state_subject(NodeOffer, "node1"), b"gossip")
    there = writer.frames
    await store(bus, decision(2))
    await until(there + 1)
    objects.put(PODS, {"metadata": {"name": "web", "namespace": "shop", "uid": "p1"}, "spec": {"nodeName": "node1"}})
    await until(there + 2)
    stop.set()
    ending = await work
    writer.close()
    return ending, out.getvalue(), recorder


async def test_what_comes_is_written() -> None:
    ending, data, recorder = await recorded()
    assert ending == "stopped"
    assert recorder.refused >= 1
    found = [frame.what for frame in read(data).frames]
    assert isinstance(found[0], RecordedObject)
    assert (found[0].kind, found[0].uid) == ("Node", "n1")
    assert isinstance(found[1], NodeOffer)
    # What was decided before has nothing in the recording that led to it.
    assert [one.seq for one in found if isinstance(one, Decision)] == [2]
    assert isinstance(found[-1], RecordedObject)
    assert found[-1].document is not None
    assert found[-1].document["spec"] == {"nodeName": "node1"}


async def test_a_recording_that_is_full_ends() -> None:
    ending, data, _ = await recorded(max_bytes=1)
    assert ending == "full"
    assert list(read(data).frames) == []


async def test_without_the_stream_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LISTED_S", 0.1)
    clock = SystemClock()
    bus, objects = MemoryBus(clock=clock), MemoryObjects(clock)
    bus.close("the server is gone")
    recorder = ClusterRecorder(ClusterWriter(io.BytesIO(), BEGAN), clock)
    with pytest.raises(Unavailable):
        await recorder.record(bus, recorder.mirrors(objects), RecordingEnd(asyncio.Event()), lambda progress: None)


def test_without_a_cluster_nothing_is_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    app: Any = typer.Typer()
    app.command()(record.record)
    result = CliRunner().invoke(app, ["--cluster", "-o", str(tmp_path / "x.gz")])
    assert "no cluster is known" in str(result.exception)
    assert not (tmp_path / "x.gz").exists()
