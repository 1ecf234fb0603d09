"""The smaller rules of qrm: memory steps, weights, standing advice, offers, foreign writers, status."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_placement import advise

from services.qrm.core.active_advice import ActiveAdvice, Stage, offered, offered_by_numa, still_offered
from services.qrm.core.memory.limits import MARGIN_BYTES, STEP_BYTES, MemoryUse, limit_steps
from services.qrm.core.statement import status_of
from services.qrm.core.writes.classes import tenant_millis, wanted_groups, weights
from services.qrm.core.writes.foreign import WINDOW_S, ForeignWatch
from services.qrm.core.writes.plan import Sets
from shared.contracts.mode import Mode
from shared.contracts.pod import Container, Pod, QosClass
from shared.core.cgroups.knobs import Knob, Version
from shared.core.cgroups.layout import OwnLayout
from shared.core.cpus.cpuset import CpuSet
from shared.core.node_mode import weaker

MIB = 1 << 20
GIB = 1 << 30


@pytest.mark.parametrize(
    ("version", "limit", "use", "steps"),
    [
        pytest.param(1, GIB, MemoryUse(0), {Knob.MEMORY_MAX: GIB}, id="v1, nothing in use"),
        pytest.param(
            1, 100 * MIB, MemoryUse(200 * MIB), {Knob.MEMORY_MAX: 200 * MIB + MARGIN_BYTES}, id="v1, above the use"
        ),
        pytest.param(
            1, 100 * MIB, MemoryUse(200 * MIB, 150 * MIB), {Knob.MEMORY_MAX: 100 * MIB}, id="v1, page cache may go"
        ),
        pytest.param(
            1, 100 * MIB, MemoryUse(GIB, GIB), {Knob.MEMORY_MAX: GIB - STEP_BYTES}, id="v1, one step of cache at a time"
        ),
        pytest.param(
            2,
            100 * MIB,
            MemoryUse(200 * MIB, 200 * MIB),
            {Knob.MEMORY_HIGH: 100 * MIB, Knob.MEMORY_MAX: 200 * MIB + MARGIN_BYTES},
            id="v2, high pushes and max waits",
        ),
        pytest.param(
            2,
            100 * MIB,
            MemoryUse(GIB),
            {Knob.MEMORY_HIGH: GIB - STEP_BYTES, Knob.MEMORY_MAX: GIB + MARGIN_BYTES},
            id="v2, one step at a time",
        ),
        pytest.param(2, GIB, MemoryUse(MIB), {Knob.MEMORY_HIGH: GIB, Knob.MEMORY_MAX: GIB}, id="v2, room enough"),
    ],
)
def test_memory_limits_move_like_this(version: Version, limit: int, use: MemoryUse, steps: dict[Knob, int]) -> None:
    assert dict(limit_steps(limit, use, version)) == steps


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.data(), st.sampled_from((1, 2)))
def test_the_hard_limit_is_never_below_what_cannot_be_dropped(
    limit: int, usage: int, data: st.DataObject, version: Version
) -> None:
    use = MemoryUse(usage, data.draw(st.integers(0, usage)))
    hard = dict(limit_steps(limit, use, version))[Knob.MEMORY_MAX]
    assert hard >= use.usage_bytes - use.droppable_bytes + MARGIN_BYTES or hard == limit > use.usage_bytes
    assert version == 1 or hard >= usage


@pytest.mark.parametrize(
    ("has_idle", "knob", "value"), [(True, Knob.CPU_IDLE, 1), (False, Knob.CPU_SHARES, 2)], ids=["idle", "shares"]
)
def test_reclaimed_work_has_the_lowest_weight_and_the_top_group_what_its_tenants_asked_for(
    has_idle: bool, knob: Knob, value: int
) -> None:
    written = weights(2, asked_millis=500, has_idle=has_idle, top="t")
    reclaimed = [write for write in written if write.group == "t/reclaimed_cores"]
    assert [(write.knob, write.value) for write in reclaimed] == [(knob, value)]
    others = [(write.group, write.knob, write.value) for write in written if write not in reclaimed]
    groups = ("t/shared_cores", "t/dedicated_cores", "t/system_cores")
    top = [("t", Knob.CPU_IDLE, 0), ("t", Knob.CPU_SHARES, 512)]
    assert sorted(others[:3]) == sorted((group, Knob.CPU_SHARES, 2048) for group in groups)
    assert others[3:] == (top if has_idle else top[1:]), "idle is switched off before shares are written"


@pytest.mark.parametrize(
    ("has_idle", "knob", "value"), [(True, Knob.CPU_IDLE, 1), (False, Knob.CPU_SHARES, 2)], ids=["idle", "shares"]
)
def test_without_tenants_the_top_group_weighs_nothing_against_the_rest_of_the_host(
    has_idle: bool, knob: Knob, value: int
) -> None:
    written = weights(2, asked_millis=0, has_idle=has_idle, top="t")
    assert [(w.knob, w.value) for w in written if w.group == "t"] == [(knob, value)]


def test_a_tenant_without_a_request_weighs_one_core_and_all_together_at_most_the_machine() -> None:
    def tenant(uid: str, qos: QosClass, millis: int) -> Pod:
        return Pod(uid=uid, name=f"p{uid}", qos=qos, containers=(Container(name="c", cpu_request_millis=millis),))

    pods = [tenant("a", "shared_cores", 0), tenant("b", "shared_cores", 250), tenant("c", "reclaimed_cores", 9000)]
    assert tenant_millis(pods, 2) == 1250
    assert tenant_millis([*pods, tenant("d", "dedicated_cores", 5000)], 2) == 2000
    assert tenant_millis([], 2) == 0


def test_reclaimed_groups_yield_first_and_system_pods_run_anywhere_without_a_reserve() -> None:
    pools = {"share": CpuSet.parse("1-3"), "reclaim": CpuSet.parse("0")}
    wanted = wanted_groups(pools, Sets(CpuSet.parse("0-3"), CpuSet.parse("0")), OwnLayout("t"))
    shown = {group: (str(want.sets.cpus), want.rank) for group, want in wanted.items()}
    assert shown == {
        "t": ("0-3", None),
        "t/reclaimed_cores": ("0", 0),
        "t/shared_cores": ("1-3", 1),
        "t/dedicated_cores": ("1-3", 1),
        "t/system_cores": ("0-3", 1),
    }


@pytest.mark.parametrize(
    ("now_s", "stage"), [(100.0, "applied"), (110.0, "applied"), (110.1, "held"), (119.9, "held"), (120.0, "floor")]
)
def test_advice_is_fresh_then_held_then_let_go(now_s: float, stage: Stage) -> None:
    assert ActiveAdvice(advise(share=1), received_s=100.0, lease_until_s=120.0).stage(now_s) == stage


def test_the_lease_counts_before_the_advice_s_own_validity() -> None:
    assert ActiveAdvice(advise(share=1), received_s=100.0, lease_until_s=103.0).stage(104.0) == "floor"


@pytest.mark.parametrize(
    ("one", "other", "weak"),
    [("enforce", "enforce", "enforce"), ("enforce", "dry-run", "dry-run"), ("observe", "enforce", "observe")],
)
def test_the_weaker_mode_counts(one: Mode, other: Mode, weak: Mode) -> None:
    assert weaker(one, other) == weak


@pytest.mark.parametrize(
    ("cpu_millis", "memory_bytes", "cpus", "limit", "offer"),
    [
        pytest.param(42000, GIB, 42, None, (42000, GIB), id="as advised"),
        pytest.param(42000, GIB, 4, None, (4000, GIB), id="not more than the CPUs in force"),
        pytest.param(500, GIB, 4, None, (500, GIB), id="not more than advised"),
        pytest.param(42000, GIB, 42, 100, (42000, 100), id="not more than the limit in force"),
        pytest.param(42000, GIB, 0, None, (0, GIB), id="nothing while the pool cannot be read"),
    ],
)
def test_the_offer_is_what_is_in_force_and_never_above_the_advice(
    cpu_millis: int, memory_bytes: int, cpus: int, limit: int | None, offer: tuple[int, int]
) -> None:
    advice = advise(share=1).model_copy(
        update={"reclaimed_cpu_millis": cpu_millis, "reclaimed_memory_bytes": memory_bytes}
    )
    assert offered(advice, cpus, limit) == offer


def test_nothing_is_offered_before_the_first_advice() -> None:
    assert offered(None, 44, None) == (0, 0)


@pytest.mark.parametrize(
    ("before", "cpus", "limit", "still"),
    [
        pytest.param((9000, GIB), "0-3", None, (9000, GIB), id="the pool as it was, of which more was promised"),
        pytest.param((9000, GIB), "4-7", None, (9000, GIB), id="as many other CPUs"),
        pytest.param((9000, GIB), "0-7", None, (9000, GIB), id="a larger pool"),
        pytest.param((9000, GIB), "0-2", None, (3000, GIB), id="a smaller pool"),
        pytest.param((1000, GIB), "0-2", None, (1000, GIB), id="a smaller pool that is enough"),
        pytest.param((9000, GIB), "", None, (0, GIB), id="a pool that cannot be read"),
        pytest.param((9000, GIB), "0-3", 100, (9000, 100), id="a lower limit"),
        pytest.param((9000, 10), "0-3", 100, (9000, 10), id="a higher limit"),
    ],
)
def test_of_an_earlier_offer_stands_what_is_still_in_force(
    before: tuple[int, int], cpus: str, limit: int | None, still: tuple[int, int]
) -> None:
    assert still_offered(before, CpuSet.parse("0-3"), CpuSet.parse(cpus), limit) == still


NUMAS = {1: CpuSet.parse("4-7"), 0: CpuSet.parse("0-3"), 2: CpuSet.parse("8-11")}


@given(millis=st.integers(0, 10**6), cpus=st.sets(st.integers(0, 11), min_size=1))
def test_the_parts_of_the_numa_nodes_add_up_to_the_offer(millis: int, cpus: set[int]) -> None:
    """By how many CPUs of the pool lie there: never a milli more, and nothing where the pool is not."""
    pool = CpuSet.of(cpus)
    parts = offered_by_numa(millis, pool, NUMAS)
    assert parts is not None
    assert [part.numa for part in parts] == [0, 1, 2]
    assert sum(part.reclaimed_cpu_millis for part in parts) == millis
    for part in parts:
        assert abs(part.reclaimed_cpu_millis - millis * len(pool & NUMAS[part.numa]) / len(pool)) < 1


@pytest.mark.parametrize("pool", ["", "12-15"])
def test_a_pool_that_is_on_no_numa_node_has_no_parts(pool: str) -> None:
    assert offered_by_numa(4000, CpuSet.parse(pool), NUMAS) is None


OURS = Sets(CpuSet.parse("0"), CpuSet.parse("0"))
THEIRS = Sets(CpuSet.parse("0-1"), CpuSet.parse("0"))


def passes(watch: ForeignWatch, *times_s: float) -> None:
    """Passes that each find the group changed and put it right again."""
    for now_s in times_s:
        watch.found({"g": THEIRS, "h": OURS}, now_s)
        watch.left({"g": OURS, "h": OURS}, {"g": OURS, "h": OURS}, now_s)


def test_a_group_changed_three_times_in_five_minutes_is_left_alone_until_they_have_passed() -> None:
    watch = ForeignWatch()
    watch.left({"g": OURS, "h": OURS}, {"g": OURS, "h": OURS}, 0.0)
    passes(watch, 10.0, 20.0)
    assert watch.foreign(20.0) == frozenset()
    passes(watch, 30.0)
    assert watch.foreign(30.0) == {"g"}
    assert watch.foreign(10.0 + WINDOW_S) == {"g"}
    assert watch.foreign(10.1 + WINDOW_S) == frozenset()


def test_three_changes_over_a_longer_time_are_no_foreign_writer() -> None:
    watch = ForeignWatch()
    watch.left({"g": OURS}, {"g": OURS}, 0.0)
    passes(watch, 10.0, 20.0, 20.0 + WINDOW_S)
    assert watch.foreign(20.0 + WINDOW_S) == frozenset()


def test_a_change_for_a_known_reason_is_not_counted() -> None:
    watch = ForeignWatch()
    for now_s in (1.0, 2.0, 3.0, 4.0):
        watch.left({"g": OURS}, {"g": OURS}, now_s)
        watch.forget_written()
        watch.found({"g": THEIRS}, now_s)
    assert watch.foreign(4.0) == frozenset()


def test_a_group_that_is_gone_is_forgotten() -> None:
    watch = ForeignWatch()
    watch.left({"g": OURS, "h": OURS}, {"g": OURS, "h": OURS}, 0.0)
    passes(watch, 1.0, 2.0, 3.0)
    watch.left({"h": OURS}, {"h": OURS}, 4.0)
    assert watch.foreign(4.0) == frozenset()


def test_a_group_that_is_gone_between_two_passes_was_changed_by_nobody() -> None:
    watch = ForeignWatch()
    for now_s in (1.0, 2.0, 3.0):
        watch.left({"g": OURS, "h": OURS}, {"g": OURS, "h": OURS}, now_s)
        watch.found({"h": OURS}, now_s)
    assert watch.foreign(3.0) == frozenset()


def test_what_happens_to_a_group_that_is_left_alone_does_not_make_it_foreign_for_longer() -> None:
    watch = ForeignWatch()
    watch.left({"g": OURS}, {"g": OURS}, 0.0)
    passes(watch, 10.0, 20.0, 30.0)
    for now_s in (40.0, 50.0, 60.0):
        watch.found({"g": OURS if now_s == 50.0 else THEIRS}, now_s)
        watch.left({"g": THEIRS}, {"g": THEIRS}, now_s)  # who is left alone has what is wanted
    assert watch.foreign(10.1 + WINDOW_S) == frozenset()


def test_what_could_not_be_written_is_not_missed() -> None:
    watch = ForeignWatch()
    for now_s in (1.0, 2.0, 3.0):
        watch.left({"g": THEIRS, "of-others": THEIRS}, {"g": OURS}, now_s)
        watch.found({"g": OURS, "of-others": OURS}, now_s)
    assert watch.foreign(3.0) == frozenset()


@pytest.mark.parametrize(
    ("stage", "mode", "readable", "as_wanted", "status"),
    [
        ("applied", "enforce", True, True, "applied"),
        ("applied", "enforce", True, False, "partial"),
        ("applied", "enforce", False, False, "failed"),
        ("held", "enforce", True, True, "held"),
        ("floor", "enforce", True, False, "floor"),
        ("floor", "enforce", False, False, "failed"),
        ("applied", "dry-run", False, False, "dry-run"),
        ("floor", "observe", True, True, "dry-run"),
    ],
)
def test_the_status_of_a_pass(stage: Stage, mode: Mode, readable: bool, as_wanted: bool, status: str) -> None:
    assert status_of(stage, mode, readable=readable, as_wanted=as_wanted) == status
