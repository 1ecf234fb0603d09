"""Recordings: what is written is read again, and what is broken costs no more than itself."""

import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from fixture_types import NewSample
from hypothesis import given
from hypothesis import strategies as st

from shared.core.cpus.topology import Topology
from shared.errors import Refused
from sublet.replay import generate
from sublet.replay.traces.frames import Frame, Trace
from sublet.replay.traces.reading import MAX_GAP_S, read_recording
from sublet.replay.traces.recording import FLUSH_EVERY_S, PODS_EVERY, Writer


def read(data: bytes) -> tuple[list[Frame], Trace]:
    trace = read_recording("a.gz", io.BytesIO(data))
    return list(trace.frames()), trace


def changed(data: bytes, change: Callable[[list[str]], None]) -> bytes:
    """The recording with its lines changed, not compressed."""
    lines = gzip.decompress(data).decode().splitlines()
    change(lines)
    return ("\n".join(lines) + "\n").encode()


def with_field(line: str, **fields: Any) -> str:
    return json.dumps(json.loads(line) | fields)


def whole() -> bytes:
    out = io.BytesIO()
    generate.write(out, seed=3, length_s=60.0)
    return out.getvalue()


WHOLE = whole()
WHOLE_FRAMES = 31
HEAD_BYTES = WHOLE.index(b"\x00\x00\xff\xff") + 4
"""The head is flushed at once; the flush ends in these four bytes."""


def test_a_recording_gives_back_the_samples(recorded: Callable[..., bytes], sample: NewSample) -> None:
    samples = [sample([1.25, None], 1), sample([2.5], 2, cpu_usage_cores=3.0, memory_total_bytes=1 << 40)]
    frames, trace = read(recorded(samples))
    assert (trace.node, trace.cpus, trace.smt) == ("node1", 48, True)
    assert [(frame.at_s, frame.covers_s) for frame in frames] == [(0.0, 0.0), (2.0, 2.0)]
    for frame, wanted in zip(frames, samples, strict=True):
        assert frame.sample.model_dump(exclude={"seq", "sent_at"}) == wanted.model_dump(exclude={"seq", "sent_at"})
    assert trace.faults.lost_frames == 0
    assert trace.faults.refused == trace.faults.notes == []


def test_every_field_of_a_sample_is_kept() -> None:
    """The generator fills more kinds of figures than a test would."""
    frames, _ = read(WHOLE)
    wanted = [made for _, made in generate.samples(3, 60.0)]
    assert len(frames) == len(wanted) == WHOLE_FRAMES
    for frame, made in zip(frames, wanted, strict=True):
        for mine, theirs in zip(frame.sample.pods, made.pods, strict=True):
            assert mine.pod == theirs.pod
            assert mine.containers[0].cpu_usage_cores == pytest.approx(theirs.containers[0].cpu_usage_cores, abs=6e-5)
            assert mine.containers[0].runnable_tasks == theirs.containers[0].runnable_tasks


def test_pods_are_written_when_they_change_and_now_and_then(recorded: Callable[..., bytes], sample: NewSample) -> None:
    data = recorded([sample([1.0] * (2 if n == 5 else 1)) for n in range(PODS_EVERY + 3)])
    lines = gzip.decompress(data).decode().splitlines()[1:-1]
    assert [n for n, line in enumerate(lines) if "pods" in json.loads(line)] == [0, 5, 6, PODS_EVERY]


def test_the_same_samples_give_the_same_bytes() -> None:
    assert whole() == WHOLE


@pytest.mark.parametrize("cut", [0, 1, 2, 20, HEAD_BYTES // 2])
def test_a_file_cut_within_its_head_is_no_recording(cut: int) -> None:
    with pytest.raises(Refused, match="no recording"):
        read(WHOLE[:cut])


@given(cut=st.integers(HEAD_BYTES, len(WHOLE) - 1))
def test_of_a_file_cut_anywhere_the_whole_frames_are_replayed(cut: int) -> None:
    frames, trace = read(WHOLE[:cut])
    complete = [made for _, made in generate.samples(3, 60.0)]
    assert len(frames) <= len(complete)
    assert [frame.sample.seq for frame in frames] == list(range(1, len(frames) + 1))
    assert trace.faults.refused == []
    ended = len(frames) == len(complete) and not trace.faults.notes
    assert ended or (trace.faults.notes and "no end line" in trace.faults.notes[0])


def test_a_cut_frame_is_counted_as_lost() -> None:
    plain = gzip.decompress(WHOLE)
    frames, trace = read(plain[: len(plain) // 2])
    assert 0 < len(frames) < WHOLE_FRAMES
    assert trace.faults.lost_frames == 1


def test_a_recorder_that_is_killed_leaves_all_but_the_last_seconds(
    recorded: Callable[..., bytes], sample: NewSample
) -> None:
    count = 50
    frames, trace = read(recorded([sample([1.0])] * count, close=False))
    assert len(frames) >= count - FLUSH_EVERY_S / 2.0 - 1
    assert "no end line" in trace.faults.notes[0]


def test_damaged_compression_loses_what_comes_after() -> None:
    middle = len(WHOLE) // 2
    frames, trace = read(WHOLE[:middle] + b"\xff" * 64 + WHOLE[middle + 64 :])
    assert len(frames) < WHOLE_FRAMES
    assert trace.faults.notes


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"t": float("nan")}, "finite"),
        ({"t": -1}, "t: -1"),
        ({"t": "2"}, "t: '2'"),
        ({"t": 2.0}, "out of order: t 2 s after 2 s"),
        ({"t": 1.0}, "out of order: t 1 s after 2 s"),
        ({"use": {"a0": [{"name": "main", "cpu_usage_cores": -0.5}]}}, "cpu_usage_cores"),
        ({"use": {"a0": [{"name": "main", "cpu_usage_cores": float("inf")}]}}, "finite"),
        ({"use": {"ff": []}}, "what pod ff is"),
        ({"use": []}, "want objects"),
        ({"sample": {}}, "node_reading"),
        ({"pods": 3}, "pods"),
        ({"pods": [{"uid": "../../etc", "name": "x"}]}, "uid"),
    ],
)
def test_a_frame_that_cannot_be_used_is_refused_with_its_line(
    recorded: Callable[..., bytes], sample: NewSample, fields: dict[str, Any], word: str
) -> None:
    def spoil(lines: list[str]) -> None:
        lines[3] = with_field(lines[3], **fields)

    frames, trace = read(changed(recorded([sample([1.0])] * 5), spoil))
    assert [frame.at_s for frame in frames] == [0.0, 2.0, 6.0, 8.0]
    assert len(trace.faults.refused) == 1
    assert trace.faults.refused[0].startswith("a.gz: line 4: ")
    assert word in trace.faults.refused[0]


@pytest.mark.parametrize("line", ["{", "[]", "7", ""])
def test_a_line_that_is_no_object_is_refused(recorded: Callable[..., bytes], sample: NewSample, line: str) -> None:
    frames, trace = read(changed(recorded([sample([1.0])] * 3), lambda lines: lines.insert(2, line)))
    assert len(frames) == 3
    assert trace.faults.refused[0].startswith("a.gz: line 3: ")


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("", "not_a_recording"),
        ("time_s,id,usage_cores", "not_a_recording"),
        ('{"sublet": "events"}', "not_a_recording"),
        ('{"sublet": "recording", "v": 2, "node": "n", "cpus": 4, "smt": true}', "unknown_version"),
        ('{"sublet": "recording", "node": "n", "cpus": 4, "smt": true}', "unknown_version"),
        ('{"sublet": "recording", "v": 1, "node": "n", "cpus": 0, "smt": true}', "malformed"),
        ('{"sublet": "recording", "v": 1, "node": "n", "cpus": true, "smt": true}', "malformed"),
        ('{"sublet": "recording", "v": 1, "node": "../n", "cpus": 4, "smt": true}', "malformed"),
        ('{"sublet": "recording", "v": 1, "node": "n", "cpus": 4}', "malformed"),
    ],
)
def test_a_head_that_cannot_be_used_is_refused(head: str, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        read_recording("a.gz", io.BytesIO(head.encode() + b"\n"))
    assert caught.value.reason == reason
    assert "a.gz" in str(caught.value)


def test_a_long_silence_does_not_count(recorded: Callable[..., bytes], sample: NewSample) -> None:
    frames, trace = read(recorded([sample([1.0])] * 3, step_s=MAX_GAP_S + 1))
    assert [frame.covers_s for frame in frames] == [0.0, 0.0, 0.0]
    assert trace.faults.gaps_s == 2 * (MAX_GAP_S + 1)


def test_a_newer_writers_fields_are_passed_over(recorded: Callable[..., bytes], sample: NewSample) -> None:
    def add(lines: list[str]) -> None:
        lines[1] = with_field(lines[1], colour="blue")

    frames, trace = read(changed(recorded([sample([1.0])]), add))
    assert len(frames) == 1
    assert trace.faults.refused == []


def test_a_frame_cannot_speak_for_another_node(recorded: Callable[..., bytes], sample: NewSample) -> None:
    def lie(lines: list[str]) -> None:
        sample = json.loads(lines[1])["sample"]
        lines[1] = with_field(lines[1], sample=sample | {"node": "other", "seq": 99})

    frames, _ = read(changed(recorded([sample([1.0])]), lie))
    assert (frames[0].sample.node, frames[0].sample.seq) == ("node1", 1)


def test_a_full_file_takes_no_more_frames(topology: Topology, sample: NewSample) -> None:
    out = io.BytesIO()
    writer = Writer(out, "node1", topology, max_bytes=2000)
    took = [writer.write(n * 2.0, sample([n * 1.2345])) for n in range(2000)]
    writer.close()
    assert took == sorted(took, reverse=True)
    assert not took[-1]
    assert len(out.getvalue()) == writer.bytes < 3000
    frames, trace = read(out.getvalue())
    assert len(frames) == writer.frames == sum(took)
    assert trace.faults.notes == []
