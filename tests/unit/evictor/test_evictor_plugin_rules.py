"""What is special about each plugin: its figures, its clocks, and whom it takes first."""

from dataclasses import replace
from typing import Any

import pytest
from evictor_world import GIB, pod
from plugin_world import (
    PLUGINS,
    at,
    bound,
    busy,
    calm,
    goes,
    idle,
    pressed_views,
    reading,
    says,
    settings_of,
    shown,
    view,
    words,
)

from services.evictor.core.plugin import Pressure, View
from shared.contracts.pod import Pod
from shared.contracts.sample import CpuUsage, PodReading, PoolReading
from shared.contracts.sample import Pressure as Stall


class TestCpuLoad:
    def at_load(self, *loads: float, every_s: float = 10.0) -> list[View]:
        """The tutorial's pods on a share pool of 4 CPUs."""
        one, two = pod("shared-large-pod-1", "shared_cores"), pod("shared-large-pod-2", "shared_cores")
        return [calm([reading(one, load1=1.0), reading(two, load1=load)], every_s * i) for i, load in enumerate(loads)]

    def test_the_tutorials_soft_threshold_taints_and_its_hard_one_evicts_the_largest_load(self) -> None:
        soft = says("cpu_load", self.at_load(*[5.0] * 10))
        assert words(soft) == ["calm"] * 7 + ["soft"] * 3
        assert (soft[-1].scope, soft[-1].condition) == ("cpu.load.1min.container", "CPUPressure/NoSchedule")
        views = self.at_load(*[10.0] * 10)
        hard = says("cpu_load", views)
        assert words(hard) == ["calm"] * 7 + ["hard"] * 3
        assert goes("cpu_load", views[-1], hard[-1]) == ["shared-large-pod-2", "shared-large-pod-1"]
        assert hard[-1].why.numbers == {"pool": "share", "load": 11.0, "bound": 7.2, "cpus": 4}

    def test_however_many_samples_come_the_ring_advances_by_periods(self) -> None:
        assert set(words(says("cpu_load", self.at_load(*[99.0] * 50, every_s=0.5)))) == {"calm"}

    def test_load_that_has_fallen_is_no_pressure_whatever_the_ring_holds(self) -> None:
        assert words(says("cpu_load", self.at_load(*[99.0] * 10, 1.0)))[-2:] == ["hard", "calm"]

    def test_a_gap_and_a_missing_figure_start_the_ring_anew(self) -> None:
        views = self.at_load(*[99.0] * 16)
        assert (
            words(says("cpu_load", [*views[:9], *(at(v, v.t_s + 60) for v in views[9:])]))[8:]
            == ["hard"] + ["calm"] * 7
        )
        unknown = replace(views[8], allocation=None)
        assert words(says("cpu_load", [*views[:8], unknown, views[9]]))[-3:] == ["hard", "unknown", "calm"]

    def test_samples_of_a_node_at_rest_are_in_a_row_however_short_the_period(self) -> None:
        views = self.at_load(*[99.0] * 8, every_s=4.0)
        assert words(says("cpu_load", views, period_s=1.0))[-1] == "hard"
        assert words(says("cpu_load", [replace(one, max_gap_s=3.9) for one in views], period_s=1.0))[-1] == "calm"


class TestSystemMemory:
    def stalled(self, t_s: float, share: float = 90) -> View:
        tenants = [reading(pod(f"web{i}", "shared_cores"), memory_pressure=Stall(some_avg10_percent=9)) for i in "abc"]
        batch = reading(pod("batch"), memory_pressure=Stall(some_avg10_percent=90), memory_usage_bytes=GIB)
        return calm([*tenants, batch], t_s, node={"memory_pressure": Stall(some_avg10_percent=share)})

    def test_tenants_that_stall_cost_batch_pods_their_place_and_after_long_anybody(self) -> None:
        views = [self.stalled(float(t)) for t in range(0, 50, 5)]
        findings = says("system_memory_pressure", views)
        assert words(findings) == ["calm"] * 3 + ["hard"] * 7
        assert goes("system_memory_pressure", views[3], findings[3]) == ["batch"]
        assert goes("system_memory_pressure", views[9], findings[9]) == ["batch", "weba", "webb", "webc"]
        assert findings[3].condition == "MemoryPressure/NoSchedule"

    def test_batch_pods_that_stall_are_nobodys_pressure(self) -> None:
        batch = [reading(pod(f"b{i}"), memory_pressure=Stall(some_avg10_percent=90)) for i in range(5)]
        node = {"memory_pressure": Stall(some_avg10_percent=90)}
        assert set(says("system_memory_pressure", [calm(batch, 5.0 * i, node=node) for i in range(12)])) == {"calm"}

    def test_a_long_silence_starts_every_clock_anew(self) -> None:
        views = [self.stalled(t) for t in (0.0, 10.0, 50.0, 60.0)]
        assert words(says("system_memory_pressure", views)) == ["calm"] * 4

    def test_without_stall_shares_free_memory_is_still_watched(self) -> None:
        low = calm([], node={"memory_pressure": None, "memory_free_bytes": GIB - 1})
        assert words(says("system_memory_pressure", [low])) == ["hard"]


class TestNumaMemory:
    LOW = 2 * GIB + (256 << 20)

    def free(self, free_bytes: int | None, t_s: float, **numa: Any) -> View:
        pods = [
            reading(pod("batch"), memory_usage_bytes=GIB),
            reading(pod("web", "shared_cores"), memory_usage_bytes=1),
        ]
        return calm(pods, t_s, memory_free_bytes=free_bytes, **numa)

    def test_counts_advance_by_periods_and_danger_acts_at_once(self) -> None:
        slight = [self.free(self.LOW - 1, float(t)) for t in range(36)]
        said = words(says("numa_memory_pressure", slight))
        assert said == ["calm"] * 30 + ["hard"] * 6
        danger = [self.free(2 * GIB - 1, 0.0), self.free(2 * GIB - 1, 1.0), self.free(2 * GIB - 1, 5.0)]
        findings = says("numa_memory_pressure", danger)
        assert [f.actions["0"] for f in findings] == ["reclaimed", "reclaimed", "all"]
        assert findings[0].condition is None
        assert (findings[0].observed, findings[0].threshold) == (2 * GIB - 1, self.LOW)

    def test_counts_go_on_while_the_node_rests_however_short_the_period(self) -> None:
        views = [self.free(self.LOW - 1, 4.0 * i) for i in range(7)]
        assert words(says("numa_memory_pressure", views, period_s=1.0))[-1] == "hard"
        apart = [replace(one, max_gap_s=3.9) for one in views]
        assert words(says("numa_memory_pressure", apart, period_s=1.0))[-1] == "calm"

    def test_memory_that_has_come_back_is_relief_between_two_periods_too(self) -> None:
        views = [self.free(2 * GIB - 1, 0.0), self.free(self.LOW, 1.0)]
        assert words(says("numa_memory_pressure", views)) == ["hard", "calm"]

    def test_without_the_kernels_watermarks_a_share_of_the_memory_stands_in(self) -> None:
        bare = {"watermark_low_bytes": None, "watermark_min_bytes": None}
        views = [self.free(GIB // 4, 5.0 * i, **bare) for i in range(6)]
        assert words(says("numa_memory_pressure", views)) == ["calm"] * 4 + ["hard"] * 2

    def test_an_unknown_node_is_no_evidence(self) -> None:
        assert words(says("numa_memory_pressure", [self.free(None, 0.0)])) == ["unknown"]

    def test_a_pod_that_uses_next_to_nothing_of_the_node_is_left_alone(self) -> None:
        danger = [self.free(0, 0.0), self.free(0, 5.0)]
        finding = says("numa_memory_pressure", danger)[-1]
        assert finding.actions == {"0": "all"}
        assert goes("numa_memory_pressure", danger[-1], finding) == ["batch"]


class TestRssOveruse:
    def over(self, *pods: tuple[str, str, int, dict[str, str]], **settings: Any) -> list[str]:
        readings = [
            reading(pod(name, qos, memory=100, annotations=said), memory_rss_bytes=rss) for name, qos, rss, said in pods
        ]
        (finding,) = says("rss_overuse", [calm(readings)], **settings)
        return goes("rss_overuse", calm(readings), finding) if isinstance(finding, Pressure) else [finding]

    def own(self, threshold: str) -> dict[str, str]:
        return {"katalyst.kubewharf.io/memory_enhancement": f'{{"rss_overuse_threshold": "{threshold}"}}'}

    def test_reclaimed_pods_go_first_and_a_pod_may_name_its_own_threshold(self) -> None:
        web: tuple[str, str, int, dict[str, str]] = ("web", "shared_cores", 106, {})
        batch: tuple[str, str, int, dict[str, str]] = ("batch", "reclaimed_cores", 106, {})
        assert self.over(web, batch) == ["batch", "web"]
        assert self.over(web, rss_overuse_ratio=1.06) == ["calm"]
        assert self.over(("web", "shared_cores", 106, self.own("2"))) == ["calm"]
        assert self.over(("web", "shared_cores", 81, self.own("0.8"))) == ["web"]
        assert self.over(("db", "dedicated_cores", 999, {})) == ["unknown"]

    def test_a_threshold_that_cannot_be_read_protects_the_pod(self) -> None:
        assert self.over(("web", "shared_cores", 999, self.own("much")), ("ok", "shared_cores", 1, {})) == ["calm"]


class TestCpuSuppression:
    def squeezed(self, t_s: float, usage: float = 1.0, **fields: Any) -> View:
        """12 cores asked for; half of the 4 CPUs is busy with others, so 3 can be had."""
        said = {"katalyst.kubewharf.io/cpu_enhancement": '{"suppression_tolerance_rate": "2"}',
                "katalyst.kubewharf.io/qos_level": "reclaimed_cores"}  # fmt: skip
        pods = [reading(pod("a", cpu=8000, annotations=said)), reading(pod("b", cpu=4000, annotations=said))]
        one = calm(pods, t_s, node={"cpus": CpuUsage(cpus="0-47", busy_percent=(50,) * 48)})
        pools = (PoolReading(pool="reclaim", cpu_usage_cores=usage, **fields),)
        return replace(one, sample=one.sample.model_copy(update={"pools": pools}))

    def test_who_asks_for_most_goes_after_the_time_and_takes_its_request_along(self) -> None:
        views = [self.squeezed(10.0 * i) for i in range(32)]
        findings = says("cpu_suppression", views)
        assert words(findings) == ["calm"] * 31 + ["soft"]
        assert goes("cpu_suppression", views[-1], findings[-1]) == ["a"]
        assert findings[-1].why.numbers["supply_cores"] == 3.0
        assert findings[-1].why.numbers["suppression_ratio"] == 4.0

    def test_the_pools_limit_bounds_the_supply(self) -> None:
        views = [self.squeezed(10.0 * i, cpu_limit_cores=1.0) for i in range(32)]
        findings = says("cpu_suppression", views)
        assert goes("cpu_suppression", views[-1], findings[-1]) == ["a", "b"]

    def test_a_moment_of_enough_starts_the_time_anew(self) -> None:
        views = [self.squeezed(10.0 * i, usage=20.0 if i == 15 else 1.0) for i in range(40)]
        assert set(words(says("cpu_suppression", views))) == {"calm"}

    def test_a_cpu_whose_use_is_not_known_leaves_the_supply_unknown(self) -> None:
        one = calm([], node={"cpus": CpuUsage(cpus="0-9", busy_percent=(50,) * 10)})
        assert says("cpu_suppression", [one]) == ["unknown"]


class TestNumaCpu:
    def using(self, t_s: float, **cores: float) -> View:
        pods = [bound(name, "shared_cores") for name in cores]
        return calm([reading(p, cpu_usage_cores=cores[p.name]) for p in pods], t_s)

    def test_three_of_four_samples_above_and_the_pod_that_closes_the_gap_goes(self) -> None:
        views = [self.using(15.0 * i, large=30.0, fits=6.0, small=0.5) for i in range(4)]
        findings = says("numa_cpu_pressure", views)
        assert words(findings) == ["calm"] * 2 + ["hard"] * 2
        assert findings[-1].condition == "NumaCPUPressure/NoSchedule"  # the only node
        assert goes("numa_cpu_pressure", views[-1], findings[-1]) == ["fits", "large"]

    def test_usage_that_has_fallen_is_no_pressure(self) -> None:
        views = [*(self.using(15.0 * i, a=40.0) for i in range(4)), self.using(61.0, a=1.0)]
        assert words(says("numa_cpu_pressure", views))[-2:] == ["hard", "calm"]


class TestNumaSystemTime:
    def test_the_pod_with_the_most_system_time_of_its_node_goes(self) -> None:
        pods = {"a": (20.0, 8.0), "b": (20.0, 16.0), "c": (8.0, 1.0)}
        readings = [reading(bound(name), cpu_usage_cores=cpu, cpu_sys_cores=sys) for name, (cpu, sys) in pods.items()]
        views = [calm(readings, 10.0 * i) for i in range(4)]
        findings = says("numa_sys_cpu_pressure", views)
        assert words(findings) == ["calm"] * 2 + ["hard"] * 2
        assert goes("numa_sys_cpu_pressure", views[-1], findings[-1]) == ["b", "a"]
        assert PLUGINS["numa_sys_cpu_pressure"].settings().grace_period_s == 60


class TestRootfs:
    def full(self, **extra: float) -> View:
        one = view([busy(pod("web", "shared_cores"), 9), busy(pod("batch"), 1)], low=False)
        node = one.sample.node_reading
        node = node.model_copy(update={"extra": node.extra | extra})
        return replace(one, sample=one.sample.model_copy(update={"node_reading": node}))

    def test_without_thresholds_it_is_calm_and_a_line_is_said_once(self) -> None:
        assert says("rootfs_pressure", [self.full(rootfs_available_bytes=0.0)]) == ["calm"]
        with pytest.raises(ValueError, match="minimum_free: give an amount or a ratio, not both"):
            PLUGINS["rootfs_pressure"].settings(minimum_free_bytes=1, minimum_free_ratio=0.5)
        with pytest.raises(ValueError, match="shared_threshold: give an amount or a ratio, not both"):
            PLUGINS["rootfs_overuse"].settings(shared_threshold_bytes=1, shared_threshold_ratio=0.5)

    def test_inodes_decide_where_bytes_are_plenty_and_reclaimed_pods_may_go_first(self) -> None:
        one, settings = self.full(rootfs_inodes_free=9.0), {"minimum_inodes_free": 10}
        (finding,) = says("rootfs_pressure", [one], **settings)
        assert (finding.scope, finding.condition) == ("SystemRootfs", "SystemRootfs/NoSchedule")
        assert finding.why.numbers["of"] == "inodes"
        assert goes("rootfs_pressure", one, finding, **settings) == ["web", "batch"]
        assert goes("rootfs_pressure", one, finding, **settings, reclaimed_priority_inodes_used=5) == ["batch", "web"]

    def test_overuse_is_soft_the_largest_first_and_of_shared_pods_only_in_the_named_namespaces(self) -> None:
        both = {"supported_qos": ("shared_cores", "reclaimed_cores"), "max_victims": 9,
                "shared_threshold_ratio": 0.1, "reclaimed_threshold_ratio": 0.1}  # fmt: skip
        (finding,) = says("rootfs_overuse", [self.full()], **both)
        assert not finding.hard
        assert goes("rootfs_overuse", self.full(), finding, **both) == ["batch", "web"]
        (finding,) = says("rootfs_overuse", [self.full()], **both, shared_namespaces=())
        assert goes("rootfs_overuse", self.full(), finding) == ["batch"]


class TestNetworkInterface:
    def card(self, t_s: float, up: float | None, *pods: Pod) -> View:
        extra = {} if up is None else {"nic_up.eth0": up}
        return calm([idle(p) for p in pods], t_s, node={"extra": extra})

    def test_pods_on_a_card_that_stays_down_are_soft_victims_after_the_tolerance(self) -> None:
        pods = (bound("web", "shared_cores"), bound("batch"), pod("elsewhere"))
        views = [self.card(10.0 * i, 0.0, *pods) for i in range(31)]
        findings = says("network_interface", views)
        assert words(findings) == ["calm"] * 30 + ["soft"]
        assert goes("network_interface", views[-1], findings[-1]) == ["batch", "web"]

    @pytest.mark.parametrize("moment", [1000.0, None], ids=["up", "no figure"])
    def test_a_card_that_is_up_for_a_moment_starts_the_time_anew(self, moment: float) -> None:
        views = [self.card(10.0 * i, moment if i == 15 else 0.0, bound("batch")) for i in range(40)]
        assert "soft" not in words(says("network_interface", views))

    def test_a_long_silence_starts_the_time_anew(self) -> None:
        views = [self.card(t_s, 0.0, bound("batch")) for t_s in (0.0, 10.0, 310.0, 320.0)]
        assert "soft" not in words(says("network_interface", views))


class TestTemplate:
    def test_the_largest_batch_pod_goes_while_too_little_is_available(self) -> None:
        uses = {"a": 1, "b": 3, "c": 3, "d": 2}
        pods = [reading(pod(name), memory_usage_bytes=used) for name, used in uses.items()]
        pods += [reading(pod("unknown")), reading(pod("web", "shared_cores"), memory_usage_bytes=9)]
        low, enough = (calm(pods, node={"memory_available_bytes": free}) for free in (10 * GIB - 1, 10 * GIB))
        finding, plenty = says("template", [low, enough])
        assert plenty == "calm"
        assert goes("template", low, finding) == ["b", "c", "d", "a"]


class TestReclaimedNuma:
    def test_the_largest_request_of_the_node_that_is_short_goes(self) -> None:
        def on(name: str, numa: int, cpu: int) -> PodReading:
            said = {"katalyst.kubewharf.io/numa_bind_result": str(numa)}
            return idle(pod(name, cpu=cpu, annotations=said))

        cpu = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
        one = replace(
            calm([on("a", 0, 9000), on("b", 1, 3000), on("c", 1, 3001)]),
            reclaimed_by_numa={0: {cpu: 2000}, 1: {cpu: 1000}},
        )
        (finding,) = says("reclaimed_numa_overcommit", [one])
        assert (finding.scope, finding.observed, finding.threshold) == (f"zone1|{cpu}", 6001, 5000)
        assert goes("reclaimed_numa_overcommit", one, finding) == ["c", "b"]


def test_observed_and_threshold_are_of_the_moment_and_say_which_rule_fired() -> None:
    crowd = [busy(bound(f"p{i}", "shared_cores", cpu=9000, memory=9), i) for i in range(3)]
    crowd += [busy(bound(f"r{i}", cpu=9000, memory=9), i) for i in range(3)]
    for section, plugin in PLUGINS.items():
        views = pressed_views(crowd)
        finding = shown(plugin, settings_of(section), views)[-1]
        assert isinstance(finding, Pressure)
        assert finding.why.rule, section
        for candidate in plugin.rank(views[-1], finding, settings_of(section)):
            assert candidate.why.rule, section
            assert candidate.why.numbers, section
