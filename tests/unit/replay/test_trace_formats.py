"""Public traces and exports: each is known by its content, and its rows become cores."""

import gzip
import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from services.advisor.core.model.machine import Bounds
from shared.errors import Refused
from sublet.replay.traces.formats import series
from sublet.replay.traces.frames import Faults, Trace
from sublet.replay.traces.loaders import all_traces
from sublet.replay.traces.tenants import Packing, TenantSeries

BITBRAINS = (
    "Timestamp [ms];\tCPU cores;\tCPU capacity provisioned [MHZ];\tCPU usage [MHZ];\tCPU usage [%];\t"
    "Memory capacity provisioned [KB];\tMemory usage [KB];\tDisk read throughput [KB/s];\t"
    "Disk write throughput [KB/s];\tNetwork received throughput [KB/s];\tNetwork transmitted throughput [KB/s]\n"
)
GOOGLE = "start_time,end_time,collection_id,instance_index,machine_id,average_usage.cpus,average_usage.memory\n"


def load(tmp_path: Path, packing: Packing, **contents: str | bytes) -> list[Trace]:
    paths = []
    for name, content in contents.items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(content.encode() if isinstance(content, str) else content)
    return list(all_traces(paths, "auto", packing))


def uses(trace: Trace) -> list[tuple[float, list[float]]]:
    """Each moment with what the pods use, the pods by name."""
    found = []
    for frame in trace.frames():
        pods = sorted(frame.sample.pods, key=lambda reading: reading.pod.name)
        found.append((frame.at_s, [round(pod.containers[0].cpu_usage_cores or 0.0, 6) for pod in pods]))
    return found


def answer(*results: Any, **more: Any) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(results)}} | more)


def test_an_answer_of_prometheus(tmp_path: Path) -> None:
    web = {"metric": {"namespace": "shop", "pod": "web", "container": "main"}, "values": [[1000, "1.5"], [1060, "2.5"]]}
    node = {"metric": {"job": "x", "cpu": "total"}, "values": [[1000, "0.5"], [1060.0, "0.25"]]}
    (trace,) = load(tmp_path, Packing(step_s=60.0), day=answer(web, node))
    assert uses(trace) == [(0.0, [0.5, 1.5]), (60.0, [0.5, 1.5]), (120.0, [0.25, 2.5])]
    names = sorted(reading.pod.name for reading in next(trace.frames()).sample.pods)
    assert names == ["cpu-total-job-x", "shop-web-main"]


def test_an_answer_with_line_breaks_and_packed_is_known_too(tmp_path: Path) -> None:
    text = json.dumps(json.loads(answer({"metric": {"pod": "a"}, "values": [[0, "1"], [10, "2"]]})), indent=2)
    (trace,) = load(tmp_path, Packing(step_s=10.0), day=gzip.compress(text.encode()))
    assert uses(trace)[-1] == (20.0, [2.0])


@pytest.mark.parametrize(
    "text",
    [
        answer(),
        answer(status="error"),
        json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}),
        json.dumps({"status": "success", "data": 7}),
        answer({"metric": {}, "values": [[0, "NaN"]]}),
        answer({"metric": {"a": "b"}, "values": "x"}),
        answer(7),
    ],
)
def test_an_answer_without_a_usable_value_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refused):
        load(tmp_path, Packing(), day=text)


def test_values_of_prometheus_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    good = {"metric": {"pod": "a"}, "values": [[0, "1"], [10, "NaN"], [20, "-1"], ["x", "1"], [30], 7, [40, "2"]]}
    (trace,) = load(tmp_path, Packing(step_s=10.0), day=answer(good, 7))
    assert len(trace.faults.refused) == 6
    assert trace.faults.refused[0].startswith("day: series 1: value: 'NaN'")


def test_alibabas_machines_and_containers(tmp_path: Path) -> None:
    machines = "m_2,20,50,1,,,0.1,0.2,3\nm_2,10,25,1,,,0.1,0.2,3\nm_2,30,,1,,,,,\nm_1,10,100,1,,,0.1,0.2,3\n"
    (trace,) = load(tmp_path, Packing(pods_per_node=2, step_s=10.0), machine_usage=machines)
    assert uses(trace)[:3] == [(0.0, [4.0, 1.0]), (10.0, [4.0, 1.0]), (20.0, [2.0])]
    containers = "c_1,m_9,10,50,1,,,,0.0,0.0,5\nc_1,m_9,20,101,1,,,,0.0,0.0,5\nc_1,m_9,30,10,1,,,,0.0,0.0,5\n"
    (trace,) = load(tmp_path, Packing(pods_per_node=1, step_s=10.0), container_usage=containers)
    assert trace.faults.refused == ["container_usage: line 2: cpu_util_percent: 101: want 0 to 100 percent"]
    assert uses(trace)[0] == (0.0, [2.0])


def test_azures_readings_with_and_without_a_header(tmp_path: Path) -> None:
    rows = "0,vmA,1,90,50\n0,vmB,0,1,25\n300,vmA,1,2,75.5\n300,vmB,0,1,0\n"
    for text in (rows, "timestamp,vm id,min cpu,max cpu,avg cpu\n" + rows):
        (trace,) = load(tmp_path, Packing(pods_per_node=2, step_s=300.0), readings=gzip.compress(text.encode()))
        assert uses(trace) == [(0.0, [2.0, 1.0]), (300.0, [2.0, 1.0]), (600.0, [3.02, 0.001])]
        assert trace.faults.refused == []


def test_files_of_bitbrains_make_nodes_together(tmp_path: Path) -> None:
    one = BITBRAINS + "1376314846;\t4;\t11703;\t10912;\t50.0;\t1;\t1;\t0;\t0;\t0;\t0\n"
    other = BITBRAINS + "1376314846;\t2;\t11703;\t10912;\t25.0;\t1;\t1;\t0;\t0;\t0;\t0\n"
    (trace,) = load(tmp_path, Packing(pods_per_node=2, step_s=300.0), **{"1.csv": one, "2.csv": other})
    assert trace.node == "bitbrains-1"
    assert uses(trace)[0] == (0.0, [2.0, 0.5])


def test_files_of_one_name_in_two_folders_are_two_tenants(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "1.csv" for folder in ("a", "b")]
    for path, percent in zip(paths, ("25", "100"), strict=True):
        path.parent.mkdir()
        path.write_text(BITBRAINS + f"1;4;1;1;{percent}\n")
    (trace,) = all_traces(paths, "auto", Packing(pods_per_node=2))
    view = next(iter(trace.to_replay())).view(Bounds.of(48, smt=True))
    assert [container.cpu.usage_cores for container in view.containers] == [1.0, 4.0]


def test_the_interval_of_files_together_is_the_usual_one_of_all(tmp_path: Path) -> None:
    spans = {"1.csv": 300, "2.csv": 300, "3.csv": 7}
    files = {name: BITBRAINS + "".join(f"{n * span};4;1;1;50\n" for n in range(3)) for name, span in spans.items()}
    (trace,) = load(tmp_path, Packing(pods_per_node=3), **files)
    assert "a frame every 30 s" in trace.rule


def test_a_percentage_a_little_above_100_counts_as_100_and_is_told(tmp_path: Path) -> None:
    azure = "0,vm,1,2,50\n300,vm,1,2,100.4\n600,vm,1,2,110\n900,vm,1,2,110.1\n"
    bitbrains = BITBRAINS + "0;4;1;1;50\n300;4;1;1;100.4\n600;4;1;1;110\n900;4;1;1;110.1\n"
    for text in (azure, bitbrains):
        (trace,) = load(tmp_path, Packing(pods_per_node=1, step_s=300.0), rows=text)
        assert [use for _, use in uses(trace)] == [[2.0], [2.0], [4.0], [4.0]]
        (note,) = trace.faults.notes
        assert note.endswith(": 2 percentages above 100 count as 100")
        (refused,) = trace.faults.refused
        assert "110.1: want 0 to 100 percent" in refused


def test_the_usual_interval_is_found_from_a_bounded_part_of_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(steps: list[float]) -> float:
        asked.append(len(steps))
        return median(steps)

    monkeypatch.setattr(series, "MOST_STEPS", 10)
    monkeypatch.setattr(series, "median", counted)
    tenants = [TenantSeries(name, [60.0 * n for n in range(50)], [1.0] * 50) for name in "abc"]
    assert series.usual_interval_s(tenants, 5.0) == 60.0
    assert asked[0] <= 10
    assert series.usual_interval_s([TenantSeries("a", [1.0], [1.0])], 5.0) == 5.0


def test_googles_rows_as_csv_and_as_json_lines(tmp_path: Path) -> None:
    rows = "300000000,600000000,7,1,9,0.25,0.1\n600000000,900000000,7,1,9,0.5,0.1\n600000000,900000000,7,2,9,,0.1\n"
    row = {"start_time": "300000000", "collection_id": "7", "instance_index": 1, "average_usage": {"cpus": 0.25}}
    later = {"start_time": 600000000, "collection_id": 7, "instance_index": "1", "average_usage": {"cpus": "0.5"}}
    for text in (GOOGLE + rows, f"{json.dumps(row)}\n{json.dumps(later)}\n"):
        (trace,) = load(tmp_path, Packing(cpus=16, pods_per_node=1, step_s=300.0), usage=text)
        assert uses(trace) == [(0.0, [4.0]), (300.0, [4.0]), (600.0, [8.0])]
        assert next(trace.frames()).sample.pods[0].pod.name == "7-1"


@pytest.mark.parametrize(
    ("first", "line"),
    [
        ("m_1,10,50,1,,,0,0,3", "m_1,20,x,1,,,0,0,3"),
        ("m_1,10,50,1,,,0,0,3", "m_1,20"),
        ("m_1,10,50,1,,,0,0,3", "m_1,nan,50,1,,,0,0,3"),
        ("m_1,10,50,1,,,0,0,3", "m_1,1e300,50,1,,,0,0,3"),
        ("0,vm,1,2,3", "300,vm,1,2,-3"),
        ("0,vm,1,2,3", "300,,1,2,3"),
        ("0,vm,1,2,3", f"300,{'v' * 2000},1,2,3"),
        (GOOGLE.strip() + "\n1,2,7,1,9,0.5,0", "1,2,7"),
        (GOOGLE.strip() + "\n1,2,7,1,9,0.5,0", "x,2,7,1,9,0.5,0"),
        (BITBRAINS.strip() + "\n1;4;1;1;50", "2;4;1;1;x"),
        (BITBRAINS.strip() + "\n1;4;1;1;50", "2;1e9;1;1;50"),
    ],
)
def test_a_row_that_cannot_be_read_is_left_out_with_its_line(tmp_path: Path, first: str, line: str) -> None:
    (trace,) = load(tmp_path, Packing(pods_per_node=1, step_s=10.0), rows=f"{first}\n{line}\n")
    number = first.count("\n") + 2
    assert [fault.split(": ")[1] for fault in trace.faults.refused] == [f"line {number}"]
    assert len(uses(trace)) > 1


def test_of_two_rows_at_one_moment_the_first_counts_and_order_does_not(tmp_path: Path) -> None:
    rows = "600,vm,0,0,75\n0,vm,0,0,25\n0,vm,0,0,99\n300,vm,0,0,50\n"
    (trace,) = load(tmp_path, Packing(pods_per_node=1, step_s=300.0), rows=rows)
    assert [use for _, (use,) in uses(trace)] == [1.0, 1.0, 2.0, 3.0]


def test_more_rows_than_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MAX_ROWS", 3)
    rows = series.SeriesRows("day", Faults(), 60.0)
    for at_s in range(3):
        rows.add("a", at_s, 1.0)
    with pytest.raises(Refused, match="more than 3 rows; cut the file"):
        rows.add("a", 3.0, 1.0)
