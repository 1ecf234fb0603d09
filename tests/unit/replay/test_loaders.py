"""Files become traces by what is in them."""

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.errors import BadConfig, Refused
from sublet.replay import generate
from sublet.replay.traces.formats.planetlab import VALUES
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.loaders import FileFormat, traces
from sublet.replay.traces.tenants import Packing

DATA = Path(__file__).parents[4] / "shared" / "data"
ROW = ",".join(["10"] * VALUES)
PACKING = Packing(pods_per_node=2)


def day(*names: str, row: str = ROW) -> str:
    return "".join(f"{name},{row}\n" for name in names)


def load(
    tmp_path: Path,
    content: str | bytes,
    name: str = "day.csv",
    packing: Packing = PACKING,
    file_format: FileFormat = "auto",
) -> list[Trace]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(traces(path, file_format, packing))


@pytest.mark.parametrize("pack", [str.encode, lambda text: lzma.compress(text.encode())], ids=["csv", "csv.xz"])
def test_a_planetlab_day_is_known_by_its_content(tmp_path: Path, pack: Callable[[str], bytes]) -> None:
    (trace,) = load(tmp_path, pack(day("vm1", "vm0", "vm2")))
    frames = list(trace.frames())
    assert (trace.node, trace.cpus, len(frames)) == ("day-1", 48, 2881)
    assert frames[-1].at_s == 86_400.0
    assert frames[5].sample.node_reading.cpu_usage_cores == pytest.approx(2 * 0.4)
    assert frames[5].sample.pods[0].pod.cpu_request_millis == 4000


def test_a_csv_of_our_own_is_known_by_its_header(tmp_path: Path) -> None:
    text = "time_s,id,usage_cores\n0,a,1\n0,b,2\n10,a,3\n10,b,2\n"
    (trace,) = load(tmp_path, text, packing=Packing())
    uses = [frame.sample.node_reading.cpu_usage_cores for frame in trace.frames()]
    assert uses == [3.0, 3.0, 5.0]
    assert "every 10 s" in trace.rule


def test_a_recording_is_known_by_its_content(tmp_path: Path) -> None:
    with (tmp_path / "x.csv").open("wb") as out:
        generate.write(out, seed=1, length_s=4.0)
    (trace,) = traces(tmp_path / "x.csv", "auto", PACKING)
    assert trace.node == generate.NODE


@pytest.mark.parametrize("content", ["", "a,b,c\n1,2,3\n", "\x00\x01\x02", "{", b"\xff\xfe\xfd", b"\xfd7zXZ\x00broken"])
def test_what_is_in_no_known_format_is_refused(tmp_path: Path, content: str | bytes) -> None:
    with pytest.raises(Refused):
        load(tmp_path, content)


def test_a_format_may_be_said(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="line 1: want the header"):
        load(tmp_path, day("vm0", "vm1"), file_format="csv")
    with pytest.raises(Refused, match="no recording"):
        list(traces(tmp_path / "day.csv", "recording", PACKING))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"none\.csv"):
        list(traces(tmp_path / "none.csv", "auto", PACKING))
    with pytest.raises(Refused):
        list(traces(tmp_path, "auto", PACKING))


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("vm9," + ROW[:-3], "287 values"),
        ("vm9," + ROW + ",1", "289 values"),
        ("vm9,nan" + ROW[2:], "'nan'"),
        ("vm9,-5" + ROW[2:], "'-5'"),
        ("vm9,101" + ROW[2:], "'101'"),
        ("vm9,1.5" + ROW[2:], "'1.5'"),
        ("vm0," + ROW, "vm0"),
        ("," + ROW, "no name"),
    ],
)
def test_a_machine_that_cannot_be_used_is_left_out_with_its_line(tmp_path: Path, line: str, word: str) -> None:
    (trace,) = load(tmp_path, day("vm0", "vm1") + line + "\n")
    assert len(trace.faults.refused) == 1
    assert trace.faults.refused[0].startswith("day.csv: line 3: ")
    assert word in trace.faults.refused[0]


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("10,a,nan", "usage_cores"),
        ("10,a,inf", "usage_cores"),
        ("10,a,-1", "usage_cores"),
        ("x,a,1", "time_s"),
        ("10,a", "2 fields"),
        ("10,,1", "id: empty"),
        ("0,a,1", "out of order"),
        ("-5,a,1", "out of order"),
    ],
)
def test_a_row_that_cannot_be_used_is_left_out_with_its_line(tmp_path: Path, row: str, word: str) -> None:
    (trace,) = load(tmp_path, f"time_s,id,usage_cores\n0,a,1\n{row}\n20,a,2\n", packing=Packing())
    assert len(trace.faults.refused) == 1
    assert trace.faults.refused[0].startswith("day.csv: line 3: ")
    assert word in trace.faults.refused[0]


def test_a_day_that_is_cut_is_replayed_as_far_as_it_is_whole(tmp_path: Path) -> None:
    text = day("vm0", "vm1", "vm2", "vm3", "vm4")
    first, second = load(tmp_path, text[: len(text) - 40])
    assert first.faults.lost_frames == 1
    assert second.faults.lost_frames == 0


def test_a_packed_day_that_is_cut_is_replayed_as_far_as_it_is_whole(tmp_path: Path) -> None:
    rows = "".join(
        f"vm{n},{','.join(str((n * n * k * 7919 + k * k) % 101) for k in range(VALUES))}\n" for n in range(400)
    )
    packed = lzma.compress(rows.encode())
    found = load(tmp_path, packed[: len(packed) * 2 // 3])
    assert 0 < len(found) < 200
    assert found[0].faults.lost_frames == 1
    assert "cut or damaged" in found[0].faults.notes[0]


@pytest.mark.parametrize("content", [day("vm0", row=ROW.replace("10", "x")), "time_s,id,usage_cores\n"])
def test_a_file_without_one_usable_line_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(Refused):
        load(tmp_path, content, file_format="csv" if content.startswith("time") else "planetlab")


def test_too_few_machines_for_a_node_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="--pods-per-node 12"):
        load(tmp_path, day("vm0", "vm1"), packing=Packing())


@pytest.mark.skipif(not DATA.exists(), reason="the PlanetLab days lie beside the repository, not in it")
def test_the_published_days_are_read_whole() -> None:
    for path in sorted(DATA.glob("planetlab-*.csv.xz")):
        found = list(traces(path, "auto", Packing()))
        assert len(found) == 87
        assert found[0].faults.refused == []
        assert next(found[86].frames()).sample.pods
