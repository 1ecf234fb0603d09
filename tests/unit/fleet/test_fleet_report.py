"""The report says what was not measured, and is well only where every verdict was right."""

from sublet.fleet.report import FleetReport


def test_what_was_not_measured_is_said_and_not_made_up() -> None:
    report = FleetReport(100, 10.0, 2)
    lines = dict(report.lines())
    assert lines["central's CPU at rest"] == "not measured"
    assert lines["verdict on a silent node, p50 / p99"] == "not measured / not measured s after it was due, of 0"
    assert report.document()["cpu_of_a_core"] is None
    assert report.well


def test_the_peers_writes_stand_beside_centrals() -> None:
    report = FleetReport(6000, 10.0, 2, writes_per_s=0.5, verdicts_s=[0.1, 0.2, 3.0])
    assert dict(report.lines())["central's writes to the API server"] == (
        "0.50 /s; Koordinator: 100.0 /s, one for each node and minute"
    )
    document = report.document()
    assert (document["peer_writes_per_s"], document["verdict_p50_s"], document["verdict_p99_s"]) == (100.0, 0.2, 3.0)


def test_a_wrong_verdict_is_named() -> None:
    report = FleetReport(100, 10.0, 2, false_verdicts=["a", "b", "c", "d"], missed_verdicts=["e"])
    lines = dict(report.lines())
    assert (lines["false verdicts"], lines["missed verdicts"]) == ("4 (a, b, c, …)", "1 (e)")
    assert not report.well
