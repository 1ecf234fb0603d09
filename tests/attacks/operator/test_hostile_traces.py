"""A trace is somebody else's file: whatever is in it, a replay answers in words and within bounds."""

import contextlib
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.errors import SubletError
from sublet.replay.traces.loaders import KNOWN, FileFormat, all_traces
from sublet.replay.traces.tenants import Packing

FORMATS: list[FileFormat] = ["auto", *KNOWN]
ROWS = (
    "m_1,10,50,1,,,0.1,0.2,3",
    "c_1,m_9,10,50,1,,,,0.0,0.0,5",
    "0,vm,1,2,3",
    "time_s,id,usage_cores",
    "start_time,collection_id,instance_index,average_usage.cpus",
    '{"start_time":1,"collection_id":1,"instance_index":1,"average_usage":{"cpus":0.5}}',
    '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[0,"1"]]}]}}',
    "Timestamp [ms];\tCPU cores;\tCPU capacity provisioned [MHZ];\tCPU usage [MHZ];\tCPU usage [%]",
)
WORDS = (
    "", "nan", "-1", "inf", "1e308", "9" * 400, "\x00", "é", '"', '"a', "m_" + "x" * 5000, "{}", "[" * 3000, "0x10",
    "\u0661",
)  # fmt: skip
PACKS: tuple[Callable[[bytes], bytes], ...] = (bytes, gzip.compress, lzma.compress)


def read(path: Path, content: bytes, file_format: FileFormat) -> None:
    """Read it as far as it goes; only words of ours come out."""
    path.write_bytes(content)
    with contextlib.suppress(SubletError):
        for trace in all_traces([path], file_format, Packing(pods_per_node=1, step_s=10.0, nodes=2)):
            for number, frame in enumerate(trace.frames()):
                assert frame.at_s >= 0
                if number > 50:
                    break


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(st.sampled_from(ROWS), min_size=1, max_size=4),
    slips=st.lists(st.tuples(st.integers(0, 200), st.sampled_from(WORDS)), max_size=4),
    cut=st.none() | st.integers(0, 300),
    pack=st.sampled_from(PACKS),
    file_format=st.sampled_from(FORMATS),
)
def test_no_content_makes_more_than_a_refusal(
    tmp_path: Path,
    rows: list[str],
    slips: list[tuple[int, str]],
    cut: int | None,
    pack: Callable[[bytes], bytes],
    file_format: FileFormat,
) -> None:
    text = "\n".join(rows) + "\n"
    for place, word in slips:
        at = place % len(text)
        text = text[:at] + word + text[at + 1 :]
    read(tmp_path / "trace.csv", pack(text.encode(errors="replace"))[:cut], file_format)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=400), file_format=st.sampled_from(FORMATS))
def test_no_bytes_make_more_than_a_refusal(tmp_path: Path, content: bytes, file_format: FileFormat) -> None:
    read(tmp_path / "trace", content, file_format)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_line_without_an_end_is_read_within_bounds(tmp_path: Path, file_format: FileFormat) -> None:
    """64 MiB in 64 kB: whoever unpacked a line to its end would hold all of it."""
    read(tmp_path / "bomb.gz", gzip.compress(b"1," * (32 << 20)), file_format)


def test_an_answer_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    text = '{"status":"success","data":' + "[" * 100_000 + "]" * 100_000 + "}"
    read(tmp_path / "answer.json", text.encode(), "prometheus")


def test_labels_of_an_answer_cannot_name_a_pod_out_of_bounds(tmp_path: Path) -> None:
    labels: dict[str, object] = {"pod": "../" * 5000, "namespace": {"a": []}, "container": None}
    result = [{"metric": labels, "values": [[0, "1"]]}, {"metric": {"pod": "\n\x1b[2J"}, "values": [[0, "1"]]}]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    (trace,) = all_traces([path], "auto", Packing())
    names = [reading.pod.name for reading in next(trace.frames()).sample.pods]
    assert names == ["2j"]
    assert all(len(fault) < 300 for fault in trace.faults.refused)
