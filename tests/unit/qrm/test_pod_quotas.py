"""Quotas of best-effort pods in kubelet's groups: written, repaired, and lifted where they would be in the way."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_pod_limits_written import KINDS, MIB, PAIR, UNSAID, Limited, batch, container, groups_of

from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.writes.group_settings import GroupSettings, pod_quotas
from shared.contracts.advice import PoolAdvice
from shared.contracts.pod import BATCH_CPU, BATCH_MEMORY, Container, Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.pods.limits import limits_of
from shared.errors import Refused
from sublet.whatif import answer, kinds

VERIFY_S = 10.0
KNOWN = kinds()


@pytest.fixture(params=KINDS, ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Limited:
    return Limited(tmp_path, *request.param)


def quotas(node: Limited, pod: Pod = PAIR) -> list[int]:
    return [int(node.plain.cgroups.read(group, Knob.CPU_QUOTA) or 0) for group in groups_of(node, pod)]


def test_each_container_has_its_quota_and_the_pod_the_sum(node: Limited) -> None:
    node.start(PAIR)
    assert node.alone().settle([PAIR], 0.0, VERIFY_S, quotas=True) == []
    assert quotas(node) == [2500, 500, 2000]


def test_one_container_without_a_limit_leaves_its_pod_without_one(node: Limited) -> None:
    pod = batch(container("a", 500), container("b", 0))
    node.start(pod)
    node.alone().settle([pod], 0.0, VERIFY_S, quotas=True)
    assert quotas(node, pod) == [UNLIMITED, 500, UNLIMITED]


@pytest.mark.parametrize("changed", [{"qos": "shared_cores"}, {"kube_qos": "Burstable"}, {"kube_qos": None}])
def test_whose_quota_is_kubelets_is_left_alone(node: Limited, changed: dict[str, str]) -> None:
    pod = PAIR.model_copy(update=changed)
    node.start(pod)
    node.alone().settle([pod], 0.0, VERIFY_S, quotas=True)
    assert quotas(node, pod) == [UNLIMITED] * 3


def test_what_somebody_else_writes_is_written_again(node: Limited) -> None:
    node.start(PAIR)
    limits = node.alone()
    for now_s in (0.0, 1.0):
        limits.settle([PAIR], now_s, VERIFY_S, quotas=True)
    node.plain.cgroups.write(groups_of(node)[1], Knob.CPU_QUOTA, UNLIMITED)
    limits.settle([PAIR], 1.0 + VERIFY_S, VERIFY_S, quotas=True)
    assert quotas(node) == [2500, 500, 2000]


def test_the_quotas_of_all_pods_are_put_on_record_together(node: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [PAIR.model_copy(update={"uid": f"{n}", "name": f"p{n}"}) for n in range(5)]
    node.start(*pods)
    saved: list[int] = []
    real = node.store.save

    def save(values: Sequence[FormerValue]) -> None:
        saved.append(len(values))
        real(values)

    monkeypatch.setattr(node.store, "save", save)
    node.alone().settle(pods, 0.0, VERIFY_S, quotas=True)
    assert saved == [15]
    assert [quotas(node, pod) for pod in pods] == [[2500, 500, 2000]] * 5


def test_with_a_damaged_record_the_quota_of_the_life_before_is_not_what_was_there(node: Limited) -> None:
    node.start(PAIR)
    node.apply(PAIR)
    node.groups.apply(node.what, [PAIR], GroupSettings(2000, pod_quotas=True), 1.0)
    node.damage_record()
    for group in groups_of(node):
        node.plain.cgroups.write(group, Knob.CPU_QUOTA, 100)
    after = node.another_life()
    with pytest.raises(Refused):
        after.resume()
    after.apply(node.what, [PAIR], GroupSettings(2000, pod_quotas=True), 1.0)
    assert quotas(node) == [2500, 500, 2000]
    after.apply(node.what, [PAIR], GroupSettings(2000, pod_quotas=False), 20.0)
    assert quotas(node) == [UNLIMITED] * 3


def test_quotas_of_this_life_and_of_the_one_before_are_lifted_and_others_stay(node: Limited) -> None:
    node.start(PAIR)
    node.alone().settle([PAIR], 0.0, VERIFY_S, quotas=True)
    another_life = node.alone()
    node.plain.cgroups.write(groups_of(node)[1], Knob.CPU_QUOTA, 333)
    assert another_life.lift_quotas([PAIR]) == []
    assert quotas(node) == [UNLIMITED, 333, UNLIMITED]
    another_life.settle([PAIR], 1.0, VERIFY_S, quotas=True)
    assert quotas(node) == [2500, 500, 2000]
    another_life.lift_quotas([PAIR])
    assert quotas(node) == [UNLIMITED, 333, UNLIMITED], "what was there before"


def test_where_there_are_none_nothing_is_read(node: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    node.start(PAIR)
    limits = node.alone()
    limits.lift_quotas([PAIR])

    def read(group: str, knob: Knob) -> str | None:
        raise AssertionError(f"{group} {knob} is read")

    monkeypatch.setattr(limits.writer.cgroups, "raw", read)
    assert limits.lift_quotas([PAIR]) == []


def test_the_class_is_held_by_its_quota_only_after_the_pods_have_none(node: Limited) -> None:
    """v1 refuses a quota of a group that is below one of a group in it."""
    node.start(PAIR)
    asked = GroupSettings(2000, pod_quotas=True)
    node.apply(PAIR)
    node.groups.apply(node.what, [PAIR], asked, 1.0)
    assert quotas(node) == [2500, 500, 2000]
    written: list[tuple[str, object]] = []
    write = node.plain.cgroups.write

    def seen(group: str, knob: Knob, value: str | int) -> bool:
        if knob is Knob.CPU_QUOTA:
            written.append((group, value))
        return write(group, knob, value)

    node.plain.cgroups.write = seen  # type: ignore[method-assign]
    node.groups.apply(node.what, [PAIR], replace(asked, quota_millis=400, pod_quotas=False), 2.0)
    assert written[-1] == (node.layout.reclaimed_group([PAIR]), 400)
    assert quotas(node) == [UNLIMITED] * 3


def test_without_fresh_advice_quotas_stay_as_they_are(node: Limited) -> None:
    node.start(PAIR)
    node.apply(PAIR)
    node.groups.apply(node.what, [PAIR], GroupSettings(2000, pod_quotas=True), 1.0)
    node.groups.apply(node.what, [PAIR], GroupSettings(2000, pod_quotas=None), 20.0)
    assert quotas(node) == [2500, 500, 2000]


def test_an_uninstall_lifts_them(node: Limited) -> None:
    node.start(PAIR)
    node.alone().settle([PAIR], 0.0, VERIFY_S, quotas=True)
    after = node.another_life()
    after.resume()
    assert after.restore([PAIR]) == ()
    assert quotas(node) == [UNLIMITED] * 3


def advice(**fields: int) -> PoolAdvice:
    said = {"node": "n", "boot_id": "00c0ffee", "seq": 1, "sent_at": "2026-01-01T00:00:00Z", "policy": "canonical"}
    return PoolAdvice.model_validate(
        said | {"pools": (), "reclaimed_cpu_millis": 1, "reclaimed_memory_bytes": 1} | fields
    )


def test_when_pods_have_quotas_of_their_own() -> None:
    free, held = advice(), advice(reclaimed_quota_millis=1500)
    assert [pod_quotas(advice, enabled=True) for advice in (free, held, None)] == [True, False, None]
    assert [pod_quotas(advice, enabled=False) for advice in (free, held, None)] == [False] * 3


AMOUNTS = st.tuples(st.integers(1, 200_000), st.integers(1, 1 << 40))


@given(st.lists(AMOUNTS, min_size=1, max_size=4), st.sampled_from([1.0, 1.2, 1.25, 3.0]))
def test_pods_that_say_all_get_what_koordinator_gives_them(amounts: list[tuple[int, int]], ratio: float) -> None:
    """Shares, quota and memory limit; where a pod says less, ours has a limit of memory all the same."""
    pod = batch(*(container(f"c{n}", millis, memory) for n, (millis, memory) in enumerate(amounts)))
    pod = pod.model_copy(update={"cpu_normalization_ratio": ratio})
    layout = KubeletLayout("systemd")
    named = {}
    for one in pod.containers:
        amounts_of_one = {BATCH_CPU: one.cpu_limit_millis, BATCH_MEMORY: one.memory_limit_bytes}
        named[one.name] = {"requests": amounts_of_one, "limits": amounts_of_one}
    said = {"koord_qos": "BE", "containers": named, "cpu_normalization_ratio": ratio}
    theirs = answer(KNOWN, "be_cgroup", said)
    for own, wanted in zip(limits_of(pod, layout, UNSAID).values(), [theirs["pod"], *theirs["containers"].values()],
                           strict=True):  # fmt: skip
        assert own.cpu_shares == wanted["cpu_shares"]
        assert own.memory_bytes == wanted["memory_limit_bytes"]
        assert own.quota_millis is not None
        # Theirs is rounded up to a microsecond, ours to a milli-core, which is a hundred of them. The kernel takes none
        # below 1000, which theirs may be on a faster CPU.
        theirs_us = max(1000, wanted["cfs_quota_us"])
        assert 0 <= max(1000, own.quota_millis * 100) - theirs_us < (1 if ratio == 1 else 100)


@pytest.mark.parametrize(("ratio", "quota"), [(1.0, 500), (1.2, 417), (2.0, 250), (10.0, 50)])
def test_on_a_faster_cpu_the_same_work_takes_less_of_it(ratio: float, quota: int) -> None:
    pod = batch(container("a", 500)).model_copy(update={"cpu_normalization_ratio": ratio})
    assert [own.quota_millis for own in limits_of(pod, KubeletLayout("systemd"), UNSAID).values()] == [quota] * 2


def test_a_ratio_that_changes_is_written_at_once(node: Limited) -> None:
    node.start(PAIR)
    limits = node.alone()
    for now_s in (0.0, 1.0):
        limits.settle([PAIR], now_s, VERIFY_S, quotas=True)
    faster = PAIR.model_copy(update={"cpu_normalization_ratio": 1.25})
    limits.settle([faster], 2.0, VERIFY_S, quotas=True)
    assert quotas(node) == [2000, 400, 1600]


def test_a_limit_may_be_above_the_request() -> None:
    pod = batch(Container(name="a", cpu_request_millis=500, cpu_limit_millis=2000, memory_request_bytes=MIB,
                          memory_limit_bytes=4 * MIB, id=f"containerd://{'a' * 24}"))  # fmt: skip
    for own in limits_of(pod, KubeletLayout("systemd"), UNSAID).values():
        assert (own.cpu_shares, own.quota_millis, own.memory_bytes) == (512, 2000, 4 * MIB)
