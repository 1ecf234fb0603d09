"""A recording is somebody else's file: whatever is in it, `sublet recommend` answers in words and within bounds."""

import contextlib
import gzip
import io
import resource
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import SubletError
from sublet.replay import generate
from sublet.replay.requests.report import document, table
from sublet.replay.requests.run import RequestsReplay, replay_requests
from sublet.replay.requests.watched import RequestRules
from sublet.replay.traces.frames import MAX_NAMED_FRAMES, Faults
from sublet.replay.traces.reading import read_recording

HEAD = b'{"sublet":"recording","v":1,"node":"n","cpus":4,"smt":true}\n'
WORDS = (
    b"", b"NaN", b"-1", b"1e300", b"9" * 30, b"9" * 5000, b"\x00", b"\xff", b'"', b"{}", b"[" * 3000, b"null", b"true",
    b'{"t":1}', b"\x1b[31m",
)  # fmt: skip


def small() -> bytes:
    out = io.BytesIO()
    generate.write(out, seed=3, length_s=40.0)
    return gzip.decompress(out.getvalue())


SMALL = small()


def recommended(content: bytes) -> RequestsReplay | None:
    """What becomes of it; only words of ours come out."""
    with contextlib.suppress(SubletError):
        trace = read_recording("a", io.BytesIO(content))
        replay = replay_requests([trace], RequestRules(min_history_s=0.0))
        assert table(document(replay, ["a"], trace.faults), wide=True)
        return replay
    return None


@given(
    slips=st.lists(st.tuples(st.integers(0, len(SMALL)), st.sampled_from(WORDS)), max_size=4),
    cut=st.none() | st.integers(0, len(SMALL)),
    pack=st.sampled_from((bytes, gzip.compress)),
)
def test_no_slip_makes_more_than_a_refusal(
    slips: list[tuple[int, bytes]], cut: int | None, pack: Callable[[bytes], bytes]
) -> None:
    text = SMALL
    for at, word in slips:
        text = text[:at] + word + text[at + 1 :]
    recommended(pack(text)[:cut])


@pytest.mark.parametrize("at_s", [b"1e300", b"1e999", b"NaN", b"-1", b"9" * 5000, b'"1"', b"true", b"[]"])
def test_a_time_that_is_none_is_refused(at_s: bytes) -> None:
    frame = b'{"t":%s,"sample":{"node_reading":{"online_cpus":"0-3"}},"pods":[],"use":{}}\n' % at_s
    found = recommended(HEAD + frame)
    assert found is None or found.frames == 0


class Endless(io.RawIOBase):
    """A file of so many bytes that nobody has, made as it is read."""

    def __init__(self, line: bytes, size: int) -> None:
        self._line, self._left = line, size
        self._head: Iterator[bytes] = iter([HEAD])

    def read(self, size: int = -1) -> bytes:
        head = next(self._head, b"")
        if head:
            return head
        piece = self._line * max(1, min(size, self._left) // len(self._line)) if self._left > 0 else b""
        self._left -= len(piece)
        return piece


@pytest.mark.parametrize("line", [b"{}\n", b'{"t":-1}\n', b"x\n"], ids=["empty", "backwards", "no JSON"])
def test_a_large_file_of_nothing_takes_little_memory(line: bytes) -> None:
    """As 10 GB would: what is kept does not grow with what is refused."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trace = read_recording("a", Endless(line, 4 << 20))  # type: ignore[arg-type]
    replay = replay_requests([trace], RequestRules())
    assert replay.frames == 0
    assert len(trace.faults.refused) == MAX_NAMED_FRAMES
    assert trace.faults.refused_frames > 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 64 << 10


def test_faults_of_several_files_stay_within_bounds() -> None:
    total = Faults()
    for _ in range(3):
        one = Faults()
        for number in range(MAX_NAMED_FRAMES):
            one.refuse(str(number))
        total.add(one)
    assert (len(total.refused), total.refused_frames) == (MAX_NAMED_FRAMES, 3 * MAX_NAMED_FRAMES)
