"""What perf says becomes counts or a reason, windows follow each other, and cycles per instruction reach the sample."""

import asyncio
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_counters import FakeCounters
from fixture_types import Virtual
from kernel_trees import KernelTree
from metrics_world import running
from present import present
from rig_parts import until

from services.metrics.adapters import perf_stat
from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.perf_stat import PerfStat
from services.metrics.adapters.targets import LayoutTargets
from services.metrics.core.counters import (
    MOST_GROUPS,
    NO_COUNTERS,
    NO_PROGRAM,
    NO_V2,
    NOT_ALLOWED,
    NOTHING,
    Counts,
    Failure,
    countable,
    counts_by_group,
    failure_of,
)
from services.metrics.core.figures.figure import Quotient
from services.metrics.core.figures.results import LastPass
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from services.metrics.settings import PerfSettings
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod, QosClass
from shared.contracts.sample import NodeSample
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import Layout, OwnLayout
from shared.errors import BadConfig

PATIENCE_S = 60.0
WINDOW = PerfSettings(enabled=True, window_s=10, pause_s=5)


def row(group: str, event: str, value: object = "10.000000", **fields: Any) -> str:
    """A line of perf 6.1, as it prints them."""
    shown = {
        "counter-value": value,
        "unit": "",
        "event": event,
        "cgroup": group,
        "event-runtime": 7,
        "pcnt-running": 100.0,
    }
    return json.dumps({**shown, **fields})


def told(**counts: tuple[float, float]) -> str:
    return "\n".join(
        row(group, event, f"{value:.6f}")
        for group, both in counts.items()
        for event, value in zip(("cycles", "instructions"), both, strict=True)
    )


FORBIDDEN = "Error:\nAccess … is limited.\nperf_event_paranoid setting is 2:"
IDLE = {"event-runtime": 0, "pcnt-running": 100.0}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        pytest.param(told(a=(30, 10)), {"a": Counts(30, 10)}, id="both"),
        pytest.param(told(a=(30, 10), b=(5, 5)), {"a": Counts(30, 10)}, id="nobody asked for b"),
        pytest.param(
            "\n".join(
                row("a", f"{pmu}/{event}/", "4")
                for pmu in ("cpu_core", "cpu_atom")
                for event in ("cycles", "instructions")
            ),
            {"a": Counts(8, 8)},
            id="two kinds of cores add up",
        ),
        pytest.param(
            f"{row('a', 'cycles:u')}\n{row('a', 'instructions:u')}", {"a": Counts(10, 10)}, id="without the kernel"
        ),
        pytest.param(
            "\n".join(row("a", event, "<not counted>", **IDLE) for event in ("cycles", "instructions")),
            {"a": NOTHING},
            id="nothing ran: zero",
        ),
        pytest.param(
            f"# started\n\n{told(a=(30, 10))}\nnull\n", {"a": Counts(30, 10)}, id="other lines are passed over"
        ),
    ],
)
def test_what_perf_says(text: str, counts: dict[str, Counts]) -> None:
    assert counts_by_group(text, {"a"}) == counts


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            row("a", "cycles", "<not counted>", **{"event-runtime": 0, "pcnt-running": 0.0}), id="no counter was free"
        ),
        pytest.param(row("a", "cycles", "-5"), id="below zero"),
        pytest.param(row("a", "cycles", "nan"), id="no number"),
        pytest.param(row("a", "cycles", "1e300"), id="not as it prints numbers"),
        pytest.param(row("a", "cycles", 5), id="not a text"),
        pytest.param(row("a", "branches"), id="another event"),
        pytest.param("", id="no line"),
    ],
)
def test_a_cgroup_is_left_out_where_one_of_both_is_not_known(line: str) -> None:
    text = f"{line}\n{row('a', 'instructions')}\n{told(b=(2, 1))}"
    assert counts_by_group(text, {"a", "b"}) == {"b": Counts(2, 1)}


def test_those_above_have_the_sum_of_what_is_below_them_once() -> None:
    groups = {"p/x/1": (3.0, 1.0), "p/x/2": (4.0, 2.0), "p/y": (5.0, 5.0), "p/y/inner": (1.0, 1.0)}
    counts = counts_by_group(told(**groups), set(groups))
    assert isinstance(counts, dict)
    assert (counts["p/x"], counts["p/y"], counts["p"]) == (Counts(7, 3), Counts(5, 5), Counts(12, 8))


@pytest.mark.parametrize(
    ("complaint", "failure"),
    [
        ("Error:\nThe cycles event is not supported.\n", Failure(NO_COUNTERS, lasts=True)),
        ("Error:\nAccess … is limited.\nperf_event_paranoid setting is 2:", Failure(NOT_ALLOWED, lasts=True)),
        (
            "no access to cgroup /sys/fs/cgroup/a\n\n Usage: perf stat",
            Failure("cgroups end before they can be counted", gone=True),
        ),
    ],
)
def test_why_perf_has_ended(complaint: str, failure: Failure) -> None:
    assert failure_of(complaint) == failure


def test_an_unknown_complaint_is_shown_on_one_short_line() -> None:
    failure = failure_of(f"\n \nError:\n\x1b[2Jbad {'x' * 5000}\nmore")
    assert failure.lasts
    assert len(failure.why) < 400
    assert failure.why.isprintable()
    assert failure.why.startswith("perf: ?[2Jbad x")
    assert "Too many events" in failure_of("Error:\nToo many events are opened.\n").why
    assert "without a word" in failure_of("").why


def test_a_machine_that_counts_nothing_says_so_and_not_zero() -> None:
    text = "\n".join(row("a", event, "<not supported>") for event in ("cycles", "instructions"))
    assert counts_by_group(text, {"a"}) == Failure(NO_COUNTERS, lasts=True)
    assert isinstance(counts_by_group("", {"a"}), Failure)


@pytest.mark.parametrize("group", ["a,b", "a|b", "a*", "^a", "a b", "a\nb", "", "a" * 600, "ä"])
def test_a_name_that_perf_would_read_as_something_else_is_not_counted(group: str) -> None:
    assert not countable(group)
    assert countable("kubepods.slice/kubepods-pod0_1.slice/cri-containerd-0a.scope")


def test_a_quotient_of_nothing_is_absent() -> None:
    cpi = Quotient("cpi", of="cycles", over="instructions")
    assert cpi.compute({"cycles": 30, "instructions": 20}, 0.0, {}).value == 1.5
    assert cpi.compute({"cycles": 30, "instructions": 0}, 0.0, {}).value is None
    assert cpi.compute({"cycles": 30}, 0.0, {}).value is None


class Perf:
    """A program in perf's place, and the counters that run it; time stands still until a test moves it."""

    def __init__(self, folder: Path, settings: PerfSettings = WINDOW) -> None:
        self.path, self.runs, self.now_s = folder / "perf", folder / "runs", 100.0
        self.settings, self.says = settings, self._script
        self.counters = PerfStat(settings, "", lambda: self.now_s, program=str(self.path))

    def _script(self, words: str = "", complaint: str = "", code: int = 0, *, before: str = "") -> None:
        """What the program says from now on."""
        self.path.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$*" >>{shlex.quote(str(self.runs))}\n{before}\n'
            'while [ "$#" -gt 1 ]; do [ "$1" = --log-fd ] && fd=$2; shift; done\n'
            f'printf %s {shlex.quote(words)} >"/proc/self/fd/$fd"\n'
            f"printf %s {shlex.quote(complaint)} >&2\nexit {code}\n"
        )
        self.path.chmod(0o755)

    def count(self, *groups: str, after_s: float = 0.0) -> None:
        """One pass."""
        self.now_s += after_s
        self.counters.follow(groups)

    def a_window(self, *groups: str) -> None:
        """Passes at one moment, until the window that is begun here has been read."""
        self.count(*groups)
        until(lambda: not self.under_way(*groups), PATIENCE_S, "the window")

    def under_way(self, *groups: str) -> bool:
        self.count(*groups)
        return self.counters._window is not None

    @property
    def began(self) -> int:
        return len(self.runs.read_text().splitlines()) if self.runs.exists() else 0


@pytest.fixture
def perf(tmp_path: Path) -> Perf:
    made = Perf(tmp_path)
    made.says(told(**{"p/a": (30.0, 10.0)}))
    return made


def test_a_window_is_read_when_it_has_ended_and_the_next_begins_after_the_pause(perf: Perf) -> None:
    perf.a_window("p/a")
    assert perf.counters.counts("p") == perf.counters.counts("p/a") == Counts(30, 10)
    assert perf.counters.counts("q") == NOTHING
    perf.count("p/a", after_s=14.9)
    assert perf.began == 1
    perf.now_s += 0.2
    perf.a_window("p/a")
    assert perf.began == 2
    assert "--for-each-cgroup p/a --timeout 10000" in perf.runs.read_text()


def test_what_was_counted_holds_until_the_next_should_have_come_and_no_longer(perf: Perf) -> None:
    perf.a_window("p/a")
    perf.says("", FORBIDDEN, 255)
    perf.now_s += 16
    perf.a_window("p/a")
    assert perf.counters.failure == NOT_ALLOWED
    assert perf.counters.counts("p/a") == Counts(30, 10), "it is as old as it may be"
    perf.count("p/a", after_s=WINDOW.window_s + WINDOW.pause_s + perf_stat.LATE_S)
    assert perf.counters.counts("p/a") is None


def test_a_pod_that_ends_while_perf_starts_is_no_machine_that_lacks_what_it_has_counted(
    perf: Perf,
) -> None:
    perf.a_window("p/a")
    perf.says("", "Error:\nThe cycles event is not supported.", 255)
    perf.count("p/a", after_s=16)
    child = present(perf.counters._window).child
    child.wait(PATIENCE_S)
    perf.says(told(**{"p/a": (60.0, 10.0)}))
    perf.a_window("p/a")
    assert (perf.counters.counts("p/a"), perf.counters.failure) == (Counts(60, 10), "")


def test_what_fails_for_a_lasting_reason_is_tried_again_much_later(perf: Perf) -> None:
    perf.says("", "Error:\nThe cycles event is not supported.", 255)
    perf.a_window("p/a")
    perf.count("p/a", after_s=perf_stat.RETRY_S - 1)
    assert (perf.began, perf.counters.counts("p/a"), perf.counters.failure) == (1, None, NO_COUNTERS)
    perf.says(told(**{"p/a": (30.0, 10.0)}))
    perf.now_s += 2
    perf.a_window("p/a")
    assert (perf.counters.counts("p/a"), perf.counters.failure) == (Counts(30, 10), "")


def test_pods_that_end_are_counted_without_in_the_next_pass_and_said_if_it_goes_on(perf: Perf) -> None:
    perf.says("", "no access to cgroup /sys/fs/cgroup/p/a\n Usage: perf stat", 129)
    for _ in range(perf_stat.MOST_GONE):
        assert perf.counters.failure == ""
        perf.count("p/a")
        child = perf.counters._window
        assert child is not None
        child.child.wait(PATIENCE_S)
        perf.counters._see_whether_it_ended(child, perf.now_s)
    perf.a_window("p/a")
    assert "end before they can be counted" in perf.counters.failure


def test_a_program_that_does_not_end_is_ended(perf: Perf) -> None:
    perf.says(before="exec sleep 1000")
    perf.count("p/a")
    window = perf.counters._window
    assert window is not None
    perf.count("p/a", after_s=WINDOW.window_s + perf_stat.LATE_S)
    assert perf.under_way()
    perf.count(after_s=0.1)
    assert window.child.returncode == -9
    assert "has not ended" in perf.counters.failure


def test_without_the_program_the_next_step_is_named(tmp_path: Path) -> None:
    counters = PerfStat(WINDOW, "", lambda: 0.0, program=str(tmp_path / "none"))
    counters.follow(["p/a"])
    assert counters.failure == NO_PROGRAM
    assert counters.counts("p/a") is None


def test_where_nothing_can_be_counted_nothing_is_started(perf: Perf) -> None:
    counters = PerfStat(WINDOW, NO_V2, lambda: 1e9, program=str(perf.path))
    counters.follow(["p/a"])
    assert (counters.failure, perf.began) == (NO_V2, 0)


def test_no_more_is_counted_than_the_kernel_should_bear_and_that_is_said(perf: Perf) -> None:
    groups = [f"p/{number}" for number in range(MOST_GROUPS + 3)]
    perf.says(told(**{groups[0]: (1.0, 1.0)}))
    perf.a_window(*groups)
    assert f"p/{MOST_GROUPS - 1} " in perf.runs.read_text()
    assert f"p/{MOST_GROUPS}" not in perf.runs.read_text()
    assert perf.counters.failure.startswith("3 containers are not counted")


def _open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_no_descriptor_and_no_child_is_left(perf: Perf) -> None:
    before = _open_files()
    perf.a_window("p/a")
    perf.says(before="exec sleep 1000")
    perf.count("p/a", after_s=16)
    window = perf.counters._window
    assert window is not None
    perf.counters.close()
    assert window.child.returncode == -9
    assert _open_files() == before


def _pod(name: str, qos: QosClass = "shared_cores") -> Pod:
    uid = name.encode().hex()
    return Pod(uid=uid, name=name, qos=qos, containers=(Container(name="main", id=f"containerd://{uid * 6}"),))


PODS = (_pod("web"), _pod("api"), _pod("job", "reclaimed_cores"))
OWN, KUBELET = OwnLayout(), KubeletLayout("systemd")


def _group(layout: Layout, pod: Pod) -> str:
    return present(layout.container_group(pod, pod.containers[0]))


def _samples(tree: KernelTree, layout: Layout, counters: FakeCounters, passes: int) -> list[NodeSample]:
    host = HostReader(tree.root, Cgroups(tree.root), counters=counters)
    collector = Collector(host, known_sources(), LayoutTargets(tree.root, layout), lambda: 1.0)
    memory, found = LastPass(), list[NodeSample]()
    for number in range(passes):
        collected = collector.collect(PODS)
        fields, memory = summarise(memory, collected.readings, collector.offered, PODS, float(number))
        fields["counters_unmeasured"] = collected.uncounted
        found.append(NodeSample(node="n", boot_id="0" * 8, seq=1, sent_at=datetime.now(UTC), **fields))
    return found


@pytest.mark.parametrize("layout", [OWN, KUBELET], ids=["own groups", "kubelet's"])
def test_a_pools_cycles_per_instruction_are_those_of_its_containers_together(tree: KernelTree, layout: Layout) -> None:
    counted = (Counts(30, 10), Counts(10, 30), NOTHING)
    rates = {_group(layout, pod): counts for pod, counts in zip(PODS, counted, strict=True)}
    for group in (*layout.classes.values(), *(layout.pod_group(pod) for pod in PODS), *rates):
        tree.group(group, usage_ns=10**9)
    counters = FakeCounters(rates)
    first, _, last = _samples(tree, layout, counters, 3)
    assert "cpi" not in present(first.pool("share")).extra, "nothing has been counted yet"
    shares = {pool.pool: pool.extra.get("cpi") for pool in last.pools}
    assert shares["share"] == 1.0, "40 cycles in 40 instructions, not the mean of 3 and a third"
    assert shares["reclaim"] is None, "it ran no instruction: absent, and not zero"
    assert {pod.pod.name: pod.containers[0].extra.get("cpi") for pod in last.pods} == {
        "api": pytest.approx(1 / 3), "web": 3.0, "job": None,
    }  # fmt: skip
    assert counters.followed[-1] == _group(layout, PODS[-1]), "tenants first"


def test_a_failure_is_in_the_sample_and_no_figure_is(tree: KernelTree) -> None:
    for group in OWN.classes.values():
        tree.group(group)
    (sample,) = _samples(tree, OWN, FakeCounters({}, failure=NO_COUNTERS), 1)
    assert sample.counters_unmeasured == NO_COUNTERS
    assert sample.pools
    assert not [pool for pool in sample.pools if "cpi" in pool.extra]


def test_while_it_is_off_no_source_counts_and_nothing_is_asked() -> None:
    assert set(known_sources()) - set(known_sources(counters=False)) == {"cpi"}


def test_it_cannot_be_switched_while_metrics_runs(virtual: Virtual) -> None:
    async def story() -> None:
        async with running() as service:
            with pytest.raises(BadConfig, match=r"metrics\.perf holds from the agent's start"):
                service.app.reconfigure({"perf": {"enabled": True}})
            service.app.reconfigure({"period_s": 3.0})
            await asyncio.sleep(0)

    virtual(story())
