"""A node at rest: advice that asks for the same arranges nothing and reads no pod's group but in its turn."""

import asyncio
import shutil
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_cgroups import PlainCgroups
from qrm_world import TUTORIAL_NODE, Lease, Node, Run
from test_admit import pod as asking
from test_kubelet_groups import BATCH, OWNER, TENANT
from test_placement import advise

from services.qrm.adapters.checkpoint.file import CheckpointFile
from services.qrm.core import state as steps
from services.qrm.core.active_advice import ActiveAdvice
from services.qrm.core.placement.arrangement import Node as Arranging
from services.qrm.core.placement.arrangement import arrange
from services.qrm.core.placement.pools import Order
from services.qrm.core.state import QrmState, accept
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.pod import Pod
from shared.core.cgroups.kubelet_layout import KubeletLayout

NODE = Arranging(TUTORIAL_NODE, {0: 1 << 40, 1: 1 << 40})
ORDER: Order = "reclaim-first"
PODS = (TENANT, BATCH, OWNER)
LAYOUT = KubeletLayout("cgroupfs")
VERIFY_S = 10


class AtRest:
    """A node of kubelet's whose pods run, and what is read of their groups."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, verify_s: float = VERIFY_S) -> None:
        self.plain = PlainCgroups(folder / "host")
        for home in sorted({LAYOUT.top, *LAYOUT.homes}):
            self.plain.add(home)
        for number, one in enumerate(PODS):
            for group in (LAYOUT.pod_group(one), LAYOUT.container_group(one, one.containers[0])):
                assert group
                self.plain.add(group)
                self.plain.set(group, "cgroup.procs", f"{number + 1}")
        self.read: list[str] = []
        text = self.plain.cgroups.text

        def counted(group: str, name: str, controller: str = "") -> str | None:
            self.read.append(f"{group}/{name}")
            return text(group, name, controller)

        monkeypatch.setattr(self.plain.cgroups, "text", counted)
        self.lease = Lease()
        self.node = Node(
            folder, self.lease, plain=self.plain, layout=LAYOUT, substrate="kubernetes", lease_s=600, verify_s=verify_s
        )
        self.node.processes |= dict.fromkeys(range(1, len(PODS) + 1), "sleep")
        self.node.pods.known = list(PODS)

    async def settle(self) -> None:
        for _ in range(4):
            await self.advise()
        self.read.clear()

    async def advise(self) -> None:
        """A second with advice that asks for the same; what it offers moves."""
        await self.node.hear(self.node.advice(reclaimed_cpu_millis=30_000 + len(self.node.heard), valid_for_s=600))
        await asyncio.sleep(1)

    def read_of(self, pod: Pod) -> list[str]:
        group = LAYOUT.pod_group(pod)
        return [name.removeprefix(f"{group}/") for name in self.read if name.startswith(f"{group}/")]


def test_unchanged_advice_arranges_nothing_and_reads_no_pods_group_outside_of_its_turn(
    tmp_path: Path, virtual: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        rest = AtRest(tmp_path, monkeypatch, verify_s=3600)
        async with rest.node:
            await rest.settle()
            renewed, told = len(rest.lease.renewals), len(rest.node.heard)

            def never(*_: object) -> None:
                raise AssertionError("arranged anew")

            monkeypatch.setattr(steps, "arrange", never)
            monkeypatch.setattr(steps, "arrange_floor", never)
            for _ in range(20):
                await rest.advise()
            assert not [name for pod in PODS for name in rest.read_of(pod)]
            assert len(rest.lease.renewals) == renewed + 20, "each advice renews the lease"
            assert len(rest.node.heard) == told + 20
            assert rest.node.last.reclaimed_cpu_millis > 30_000, "the offer follows"

    virtual(story())


def test_each_pods_group_with_all_below_it_is_read_back_once_a_period(
    tmp_path: Path, virtual: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        rest = AtRest(tmp_path, monkeypatch)
        async with rest.node:
            await rest.settle()
            for _ in range(3 * VERIFY_S):
                await rest.advise()
            for pod in PODS:
                sets = [name for name in rest.read_of(pod) if name.endswith("cpuset.cpus")]
                assert len(sets) == 3 * 2, "the pod's own and its container's"

    virtual(story())


@pytest.mark.parametrize("what", [("cpuset.cpus", "0-47", "cpuset"), ("cpu.idle", "0", "cpu")])
def test_what_somebody_wrote_to_a_pods_group_is_written_anew_within_the_period(
    tmp_path: Path, virtual: Run, monkeypatch: pytest.MonkeyPatch, what: tuple[str, str, str]
) -> None:
    name, text, controller = what

    async def story() -> None:
        rest, group = AtRest(tmp_path, monkeypatch), LAYOUT.pod_group(BATCH)
        async with rest.node:
            await rest.settle()
            wanted = rest.plain.get(group, name, controller)
            rest.plain.set(group, name, text, controller)
            assert wanted != text
            for _ in range(VERIFY_S + 1):
                await rest.advise()
            assert rest.plain.get(group, name, controller) == wanted

    virtual(story())


def test_a_group_that_was_made_anew_under_its_name_is_seen_by_the_next_look(
    tmp_path: Path, virtual: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        rest, group = AtRest(tmp_path, monkeypatch, verify_s=3600), LAYOUT.pod_group(TENANT)
        async with rest.node:
            await rest.settle()
            wanted = rest.plain.get(group)
            kept = rest.plain.folder(group, "cpuset").with_name("kept")  # so that no new folder gets its inode
            shutil.move(rest.plain.folder(group, "cpuset"), kept)
            rest.plain.add(group)
            shutil.rmtree(kept)
            assert rest.plain.get(group) != wanted
            await asyncio.sleep(1)
            assert rest.plain.get(group) == wanted

    virtual(story())


def test_what_a_restart_would_find_already_wakes_no_thread(
    tmp_path: Path, virtual: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        rest = AtRest(tmp_path, monkeypatch)
        async with rest.node:
            await rest.settle()
            saved: list[PoolAdvice] = []
            save = CheckpointFile.save

            def counted(self: CheckpointFile, advice: PoolAdvice, *others: object) -> None:
                saved.append(advice)
                save(self, advice, *others)  # type: ignore[arg-type]

            monkeypatch.setattr(CheckpointFile, "save", counted)
            for _ in range(5):
                await rest.advise()
            assert not saved
            await rest.node.hear(rest.node.advice(12, 36, valid_for_s=600))
            await asyncio.sleep(1)
            assert [one.size_of("share") for one in saved] == [12]

    virtual(story())


ADVICES = st.builds(
    advise, share=st.sampled_from([6, 12]), reclaim=st.sampled_from([30, 32]), reserve=st.sampled_from([0, 4])
)


def _other_words(advice: PoolAdvice) -> PoolAdvice:
    """The same sizes with everything else another one."""
    others = {"policy": "other", "reclaimed_cpu_millis": 1, "reclaimed_memory_bytes": 2, "oversold_ratio": 2.0,
              "reclaimed_memory_limit_bytes": 3, "reclaimed_quota_millis": 4, "valid_for_s": 5.0, "seq": 99,
              "required_cores": 1.0, "mode": "observe"}  # fmt: skip
    return advice.model_copy(update=others)


@given(ADVICES, ADVICES, st.sets(st.sampled_from(["a", "b", "c"])))
def test_an_arrangement_is_handed_on_only_where_it_would_be_made_the_same(
    first: PoolAdvice, second: PoolAdvice, names: Collection[str]
) -> None:
    pods: Callable[[], list[Pod]] = lambda: [asking(name, 2) for name in sorted(names)]  # noqa: E731
    state = QrmState()
    for advice in (first, _other_words(first), second, _other_words(second)):
        there = replace(NODE, pods=pods())
        state, arranged = accept(state, there, ActiveAdvice(advice, 0.0, 10.0), ORDER)
        assert arranged == arrange(there, advice, ORDER)


def test_all_that_an_arrangement_takes_from_an_advice_is_compared() -> None:
    state, first = accept(QrmState(), NODE, ActiveAdvice(advise(share=6, reclaim=42), 0.0, 10.0), ORDER)
    for advice in (
        advise(share=12, reclaim=36),
        advise(share=6, reclaim=42).model_copy(update={"overlap": True}),
        advise(share=6, reclaim=42).model_copy(
            update={"pools": (PoolSize(pool="share", cpus=6), PoolSize(pool="reclaim", cpus=38))}
        ),
    ):
        assert accept(state, NODE, ActiveAdvice(advice, 0.0, 10.0), ORDER)[1] != first
    assert accept(state, NODE, ActiveAdvice(advise(share=6, reclaim=42), 0.0, 10.0), "share-first")[1] != first
