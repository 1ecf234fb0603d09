"""Recording from the bus."""

import asyncio
import io

import pytest
from fixture_types import NewSample, Virtual
from present import present

from shared.adapters.clock import LoopClock
from shared.contracts.sample import NodeSample
from shared.core.cpus.topology import Topology
from shared.errors import Refused
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire
from sublet.replay import progress
from sublet.replay.traces.frames import Faults, Frame
from sublet.replay.traces.reading import read_recording
from sublet.replay.traces.recorder import SILENCE_S, Progress, RecordingEnd, record
from sublet.replay.traces.recording import Writer


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def recording(
    topology: Topology,
    sample: NewSample,
    *,
    count: int = 10,
    for_s: float | None = None,
    max_bytes: int | None = None,
    stop_at_s: float | None = None,
) -> tuple[str, bytes, list[Progress]]:
    """What a recorder writes while samples come every 2 s for `count` times; and all that it progress."""
    bus, clock, stop, out = MemoryBus(), LoopClock(), asyncio.Event(), io.BytesIO()
    writer = Writer(out, "node1", topology, max_bytes=max_bytes)
    told_of: list[Progress] = []
    samples = await Wire(bus, clock, node="node1", service="record").newest(NodeSample)
    metrics = Wire(bus, clock, node="node1", service="metrics")

    async def send() -> None:
        for number in range(count):
            fields = sample([1.0 + number]).model_dump(include={"window_s", "node_reading", "pods"})
            await metrics.publish(metrics.stamp(NodeSample, **fields))
            await clock.sleep(2.0)

    async def end() -> None:
        await clock.sleep(present(stop_at_s))
        stop.set()

    others = [asyncio.ensure_future(send()), *([asyncio.ensure_future(end())] if stop_at_s else [])]
    ending = await record(samples, writer, clock, RecordingEnd(stop, for_s), told_of.append)
    for other in others:
        other.cancel()
    writer.close()
    return ending, out.getvalue(), told_of


def frames(data: bytes) -> list[Frame]:
    return list(read_recording("a", io.BytesIO(data)).frames())


def test_each_sample_becomes_a_frame_until_the_time_is_over(
    virtual: Virtual, topology: Topology, sample: NewSample
) -> None:
    ending, data, told_of = virtual(recording(topology, sample, for_s=9.0))
    found = frames(data)
    assert ending == "time"
    assert [round(frame.at_s) for frame in found] == [0, 2, 4, 6, 8]
    assert [frame.sample.pods[0].containers[0].cpu_usage_cores for frame in found] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert told_of[-1].frames == 5


def test_a_recorder_stops_when_told(virtual: Virtual, topology: Topology, sample: NewSample) -> None:
    ending, data, _ = virtual(recording(topology, sample, stop_at_s=3.5))
    assert (ending, len(frames(data))) == ("stopped", 2)


def test_a_recorder_stops_when_the_file_is_full(virtual: Virtual, topology: Topology, sample: NewSample) -> None:
    ending, data, _ = virtual(recording(topology, sample, count=500, max_bytes=1500))
    assert ending == "full"
    assert 0 < len(frames(data)) < 500


def test_silence_is_told(virtual: Virtual, topology: Topology, sample: NewSample) -> None:
    _, data, told_of = virtual(recording(topology, sample, count=0, for_s=30.0))
    assert frames(data) == []
    assert max(progress.silent_s for progress in told_of) >= SILENCE_S


def test_progress_is_a_line_a_minute_where_nobody_looks_and_one_line_on_a_terminal() -> None:
    quiet, seen = io.StringIO(), Terminal()
    for line in (progress.ProgressLine("node1", quiet), progress.ProgressLine("node1", seen)):
        for second in range(121):
            line.show(Progress(float(second), second // 2, 1000 * second, 0.0))
        line.end("done")
    assert quiet.getvalue().splitlines() == [
        "recording node1: 0:00:00, 0 frames, 0 kB",
        "recording node1: 0:01:00, 30 frames, 60 kB",
        "recording node1: 0:02:00, 60 frames, 120 kB",
        "done",
    ]
    assert seen.getvalue().count("\n") == 1


def test_silence_is_said_once_where_nobody_looks() -> None:
    out = io.StringIO()
    line = progress.ProgressLine("node1", out)
    for second in range(40):
        line.show(Progress(float(second), 1, 10, float(max(0, second - 5))))
    assert [line for line in out.getvalue().splitlines() if "nothing for 10 s" in line]
    assert len(out.getvalue().splitlines()) == 2


def test_faults_are_told_in_one_line_each_and_not_without_end() -> None:
    faults = Faults(1, [f"a: line {n}: bad" for n in range(30)], 40.0, ["a: cut"])
    lines = list(progress.faults(faults))
    assert lines[:3] == ["a: cut", "lost: 1 frame, begun and not finished", "frame refused: a: line 0: bad"]
    assert lines[-2:] == ["frames refused: 20 more", "gaps: 40 s without a frame are not counted"]


def test_a_damaged_head_is_no_recording(topology: Topology) -> None:
    with pytest.raises(Refused):
        read_recording("a", io.BytesIO(b"\x1f\x8b\x00"))
