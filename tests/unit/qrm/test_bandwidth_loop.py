"""The bandwidth loop on resctrl in memory, by time that the test moves: who yields, what silence does, what is left."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_resctrl import INFO, FakeResctrl
from qrm_world import TUTORIAL_NODE, Node, Run, conditions

from services.qrm.adapters.resctrl.bandwidth_loop import BandwidthLoop
from services.qrm.core.resctrl.shares import cache_group
from services.qrm.core.resctrl.steering import GROUP_OF, memory_domains
from services.qrm.sections.resctrl import BandwidthClass, BandwidthSettings, ResctrlSettings
from shared.contracts.pod import QosClass
from shared.core.cpus.topology import Topology, UniformShape

MB = 1_000_000
CCDS = Topology.uniform(UniformShape(1, 2, 8, 1, cores_per_l3=4))
"""Two memory domains with two L3 caches each."""
AMD_INFO = INFO | {"MB/min_bandwidth": "0", "MB/bandwidth_gran": "1"}
AMD_WHOLE = "L3:0=7ff;1=7ff;2=7ff;3=7ff\nMB:0=2048;1=2048;2=2048;3=2048\n"
AMD = "processor : 0\nvendor_id : AuthenticAMD\n"
CLASSES: tuple[QosClass, ...] = ("dedicated_cores", "shared_cores", "reclaimed_cores")
BATCH = cache_group("reclaimed_cores")
SETTINGS = BandwidthSettings(enabled=True, capacity_mb_s=40_000)


class Clock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.now_s, UTC)

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)


class Machine:
    """Resctrl with a group for each class, whose counters move as the test says."""

    def __init__(self, control: FakeResctrl, topology: Topology = CCDS) -> None:
        self.control, self.clock, self.topology = control, Clock(), topology
        for qos in CLASSES:
            control.make(cache_group(qos))
        self.loop = BandwidthLoop(control, lambda: topology, self.clock)
        self.bytes: dict[tuple[str, int], int] = {}
        self.control.counts = {folder: {} for folder in ("", *map(cache_group, CLASSES))}
        self.tell()

    def tell(self) -> None:
        for folder, counts in self.control.counts.items():
            for l3 in memory_domains(self.topology):
                moved = self.bytes.get((folder, l3), 0)
                counts[l3] = (str(moved), str(moved))

    def second(self, settings: BandwidthSettings = SETTINGS, **mb_s: Mapping[int, int]) -> str:
        """A second in which classes moved so much through each L3 cache, and the pass behind it."""
        for name, moved in mb_s.items():
            folder = next(cache_group(qos) for qos, group in GROUP_OF.items() if group == name)
            for l3, mb in moved.items():
                self.bytes[folder, l3] = self.bytes.get((folder, l3), 0) + mb * MB
        self.clock.now_s += 1.0
        self.tell()
        return self.loop.round(settings.rules())

    def bound(self, group: str = BATCH) -> Mapping[int, int]:
        return (self.control.schemata(group) or {})["MB"]


@pytest.fixture
def amd() -> Machine:
    return Machine(FakeResctrl(AMD_WHOLE, AMD_INFO, AMD))


@pytest.fixture
def intel() -> Machine:
    uniform = Topology.uniform(UniformShape(2, 1, 12, 2, cores_per_l3=12))
    return Machine(FakeResctrl(), uniform)


def test_domains_are_numa_nodes_or_those_that_share_a_cache() -> None:
    assert memory_domains(CCDS) == {0: 0, 1: 0, 2: 1, 3: 1}
    assert memory_domains(TUTORIAL_NODE) == {}, "the caches are not known"


def test_batch_gets_what_tenants_leave_and_only_it_is_bounded(amd: Machine) -> None:
    assert amd.second() == ""
    assert amd.control.written == [], "one reading says nothing"
    assert amd.second(dedicated={0: 10_000}, share={1: 10_000}, reclaim={0: 4_096, 1: 4_096, 2: 4_096, 3: 4_096}) == ""
    # 40000 less 20000 in the first domain, halved by equal use: 10000 MB/s are 80 eighths; the second is all its own.
    assert amd.bound() == {0: 80, 1: 80, 2: 160, 3: 160}
    assert {group for group, _ in amd.control.written} == {BATCH}
    assert set(amd.bound(cache_group("shared_cores")).values()) == {2048}


def test_where_tenants_take_all_batch_has_the_least_and_gets_it_back(amd: Machine) -> None:
    amd.second()
    amd.second(share={0: 25_000, 1: 15_000}, reclaim={0: 4_096, 1: 4_096})
    assert (amd.bound()[0], amd.bound()[1]) == (32, 32)
    amd.second(reclaim={0: 4_000, 1: 4_000})
    assert amd.bound()[0] > 32


def test_the_same_again_is_not_written_again(amd: Machine) -> None:
    amd.second()
    for _ in range(5):
        amd.second(share={0: 20_000}, reclaim={0: 10_000})
    settled = len(amd.control.written)
    amd.second(share={0: 20_000}, reclaim={0: 10_000})
    assert len(amd.control.written) == settled


def test_a_bound_that_is_not_used_up_stays_what_is_left(amd: Machine) -> None:
    for _ in range(50):
        amd.second(share={0: 20_000}, reclaim={0: 100})
    assert sum(amd.bound()[l3] for l3 in (0, 1)) == 160 + 32, "20000 MB/s where it runs, and the least beside"


def test_a_bound_that_lets_too_much_through_is_corrected_downward(amd: Machine) -> None:
    amd.second()
    for _ in range(3):
        amd.second(share={0: 20_000}, reclaim={0: 30_000})
    # 20000 less the twentieth of 40000 that stays free where all is in use: half of 18000 are 72 eighths.
    assert amd.bound()[0] == 72, "half of what is wanted, and no further"


def test_intel_counts_in_percent_of_what_a_cache_has_of_its_domain(intel: Machine) -> None:
    intel.second()
    assert intel.second(share={0: 20_000}, reclaim={0: 4_096, 1: 4_096}) == ""
    assert intel.bound() == {0: 50, 1: 100}
    intel.second(share={0: 39_000}, reclaim={0: 4_096, 1: 4_096})
    assert intel.bound()[0] == 10, "the least of both: 4000 of 40000, and of the hardware"


@pytest.mark.parametrize("said", ["Unavailable", "Error", "Unassigned", ""])
def test_silence_keeps_what_is_set_and_then_gives_batch_the_least(amd: Machine, said: str) -> None:
    amd.second()
    amd.second(share={0: 20_000}, reclaim={0: 4_096, 1: 4_096, 2: 4_096, 3: 4_096})
    before = dict(amd.bound())
    amd.second()
    kept = dict(amd.bound())
    for second in range(1, 13):
        amd.clock.now_s += 1.0
        amd.tell()
        amd.control.counts[cache_group("shared_cores")][1] = (said, said)
        told = amd.loop.round(SETTINGS.rules())
        assert "no figure for L3 1 of share" in told
        if second < 10:
            assert (amd.bound()[0], amd.bound()[1]) == (kept[0], kept[1]), "absent is not zero"
    assert (amd.bound()[0], amd.bound()[1]) == (32, 32)
    assert before[0] >= 32
    assert amd.second() == ""
    amd.second(reclaim={0: 4_096, 1: 4_096})
    assert amd.bound()[0] > 32, "it speaks again"


def test_a_flow_that_cannot_be_turned_around_leaves_each_domain_to_itself(amd: Machine) -> None:
    crossing = BandwidthSettings(
        enabled=True, capacity_mb_s=40_000, reclaimed_cores=BandwidthClass(throttled=True, cross_domain=True)
    )
    amd.second(crossing)
    for folder, counts in amd.control.counts.items():
        for l3 in counts:
            counts[l3] = (str(2_000 * MB), str(4_000 * MB)) if folder == BATCH else counts[l3]
    amd.clock.now_s += 1.0
    assert amd.loop.round(crossing.rules()) == ""
    assert set(amd.bound().values()) == {160}


def test_a_cap_leads_the_busiest_cache_to_its_target(amd: Machine) -> None:
    settings = BandwidthSettings(
        enabled=True, capacity_mb_s=40_000, reclaimed_cores=BandwidthClass(throttled=True, target_ccd_mb_s=8_000)
    )
    amd.second(settings)
    for _ in range(40):
        amd.second(settings, reclaim={0: 20_000})
    assert amd.bound()[0] == 32
    for _ in range(60):
        amd.second(settings, reclaim={0: 4_000})
    assert amd.bound()[0] > 100


@pytest.mark.parametrize(
    ("control", "topology", "why"),
    [
        (FakeResctrl("L3:0=7ff\n"), CCDS, "no line MB"),
        (FakeResctrl(info=INFO | {"L3_MON/mon_features": "llc_occupancy"}), CCDS, "are not counted here"),
        (FakeResctrl(info=INFO | {"MB/bandwidth_gran": "x"}), CCDS, "bandwidth_gran says 'x'"),
        (FakeResctrl("L3:0=7ff\nMB:0=4294967295\n"), CCDS, "mba_MBps"),
        (FakeResctrl(), TUTORIAL_NODE, "L3 caches are not known"),
    ],
)
def test_a_machine_that_cannot_be_steered_says_why(control: FakeResctrl, topology: Topology, why: str) -> None:
    machine = Machine(control, topology)
    for _ in range(3):
        said = machine.second()
        assert why in said
        assert "percents" in said
    assert control.written == []


def test_a_line_that_the_kernel_refuses_is_said_and_the_loop_goes_on(amd: Machine) -> None:
    amd.second()
    amd.control.info["MB/min_bandwidth"] = "500"
    assert "below the least" not in amd.second(share={0: 20_000}, reclaim={0: 4_096}), "it is raised to the least"
    amd.control.texts[BATCH]["MB"] = "9=10"
    assert "Invalid argument" in amd.second(share={0: 9_000}, reclaim={0: 4_096})


def test_settings_that_contradict_each_other_are_refused() -> None:
    for wrong, words in (
        ({"enabled": True, "bandwidth": {"enabled": True}}, "capacity_mb_s"),
        ({"bandwidth": {"enabled": True, "capacity_mb_s": 40_000}}, "resctrl.enabled"),
        ({"bandwidth": {"most_ccd_mb_s": 10, "least_ccd_mb_s": 20}}, "not below"),
    ):
        with pytest.raises(ValueError, match=words):
            ResctrlSettings.model_validate(wrong)


STEERED = {"resctrl": {"enabled": True, "bandwidth": {"enabled": True, "capacity_mb_s": 40_000}}}


@pytest.mark.parametrize(("settings", "looks"), [({}, False), (STEERED, True), (STEERED | {"mode": "observe"}, False)])
def test_it_is_off_unless_it_is_switched_on_and_the_node_enforces(
    tmp_path: Path, virtual: Run, settings: dict[str, Any], *, looks: bool
) -> None:
    async def pass_by() -> dict[str, str]:
        async with Node(tmp_path, **settings) as node:
            return conditions(await node.hear(node.advice()))

    assert ("BandwidthNotSteered" in virtual(pass_by())) is looks


def test_only_reclaimed_pods_are_bounded_unless_more_is_said() -> None:
    assert ResctrlSettings(enabled=True).rules().steered == frozenset()
    assert ResctrlSettings(enabled=True, bandwidth=SETTINGS).rules().steered == {"reclaimed_cores"}
