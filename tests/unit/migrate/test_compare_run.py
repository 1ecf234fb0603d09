"""Comparing over time: once a second, until it is over or stopped; and where each figure comes from."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from compare_messages import advice, allocation
from fixture_types import Virtual

from shared.adapters.clock import LoopClock
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.kube.client import Document, Kube, KubeError
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.errors import Refused
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Newest, Wire
from sublet.migrate.compare.difference import Comparison, Wish
from sublet.migrate.compare.evictions import EvictionsSeen, EvictionWatch, evicted, rehearsed
from sublet.migrate.compare.printing import comparison_document, comparison_table
from sublet.migrate.compare.run import ComparisonEnd, compare_agents
from sublet.migrate.compare.sources import KoordinatorOffer, SubletWish, best_effort_cores, first_words, node_amounts

GROUP = "kubepods/besteffort"


class Rising:
    """An agent that gives one core more each time."""

    def __init__(self) -> None:
        self.asked = 0

    async def wish(self) -> Wish:
        self.asked += 1
        return {"cpu_cores": float(self.asked)}


async def compared(for_s: float, stop_after: int | None = None) -> tuple[Comparison, str, float]:
    clock, stop = LoopClock(), asyncio.Event()

    async def beat(_passed_s: float, moments: int) -> None:
        if moments == stop_after:
            stop.set()

    found, ending = await compare_agents(Rising(), Rising(), clock, ComparisonEnd(stop, for_s), beat)
    return found, ending, clock.monotonic()


@pytest.mark.parametrize(
    ("for_s", "stop_after", "expected"),
    [(3600.0, None, (3600, "time")), (3600.0, 5, (5, "stopped")), (0.5, None, (1, "time"))],
)
def test_it_compares_once_a_second_until_the_end(
    virtual: Virtual, for_s: float, stop_after: int | None, expected: tuple[int, str]
) -> None:
    found, ending, took_s = virtual(compared(for_s, stop_after))
    assert (found.moments, ending) == expected
    assert took_s <= for_s + 1


async def messages(*sent: Allocation | PoolAdvice) -> SubletWish:
    broker, clock = MemoryBroker(), LoopClock()
    reader, writer = (Wire(MemoryBus(broker, clock), clock, node="n1", service=name) for name in ("migrate", "qrm"))
    allocations: Newest[Allocation] = await reader.newest(Allocation)
    advices: Newest[PoolAdvice] = await reader.newest(PoolAdvice)
    for message in sent:
        await writer.publish(message)
    await asyncio.sleep(0.1)
    return SubletWish(allocations, advices)


def test_ours_is_what_an_observing_node_says_it_would_give(virtual: Virtual) -> None:
    async def told(*sent: Allocation | PoolAdvice) -> Wish:
        return await (await messages(*sent)).wish()

    assert virtual(told()) == {}
    assert virtual(told(advice())) == {"cpu_cores": 6.0}
    assert virtual(told(advice(2500), allocation())) == {
        "cpu_cores": 2.5, "offer_cpu_millis": 5000.0, "offer_memory_bytes": float(1 << 30),
    }  # fmt: skip


def test_what_is_old_is_not_ours_any_more(virtual: Virtual) -> None:
    async def told() -> tuple[Wish, Wish]:
        ours = await messages(advice())
        fresh = await ours.wish()
        await asyncio.sleep(16)
        return fresh, await ours.wish()

    assert virtual(told()) == ({"cpu_cores": 6.0}, {})


def test_a_node_that_enforces_is_not_compared(virtual: Virtual) -> None:
    async def told() -> Wish:
        return await (await messages(allocation("enforce"))).wish()

    with pytest.raises(Refused, match=r"node n1: Sublet enforces there.*let it observe first"):
        virtual(told())


def test_the_first_word_is_waited_for_and_no_longer(virtual: Virtual) -> None:
    async def heard(*sent: PoolAdvice) -> bool:
        return await first_words(await messages(*sent), LoopClock(), 10)

    assert virtual(heard(advice())) is True
    assert virtual(heard()) is False


@pytest.mark.parametrize(
    ("version", "files", "cores"),
    [
        (1, {"cpuset/cpuset.effective_cpus": "0-3\n", "cpu/cpu.cfs_quota_us": "-1\n"}, 4.0),
        (1, {"cpuset/cpuset.effective_cpus": "0-3\n", "cpu/cpu.cfs_quota_us": "150000\n"}, 1.5),
        (1, {"cpuset/cpuset.effective_cpus": "0-3\n"}, 4.0),
        (1, {"cpuset/cpuset.effective_cpus": "junk\n", "cpu/cpu.cfs_quota_us": "-1\n"}, None),
        (1, {}, None),
        (2, {"cpuset.cpus.effective": "0-1,8\n", "cpu.max": "max 100000\n"}, 3.0),
        (2, {"cpuset.cpus.effective": "0-1,8\n", "cpu.max": "50000 100000\n"}, 0.5),
        (2, {"cpuset.cpus.effective": "0-1\n", "cpu.max": "junk\n"}, None),
    ],
)
def test_theirs_is_what_the_kernel_grants_the_best_effort_group(
    tmp_path: Path, version: int, files: dict[str, str], cores: float | None
) -> None:
    root = tmp_path / "sys/fs/cgroup"
    for controller in ("cpuset", "cpu") if version == 1 else ("",):
        (root / controller / GROUP).mkdir(parents=True)
    if version == 2:
        (root / "cgroup.controllers").write_text("cpuset cpu memory\n")
    for name, text in files.items():
        controller, _, file = name.rpartition("/")
        (root / controller / GROUP / file).write_text(text)
    assert best_effort_cores(Cgroups(tmp_path), GROUP) == cores


@pytest.mark.parametrize(
    ("node", "wish"),
    [
        (
            {"status": {"allocatable": {"kubernetes.io/batch-cpu": "4k", "kubernetes.io/batch-memory": "2Gi"}}},
            {"offer_cpu_millis": 4000.0, "offer_memory_bytes": float(2 << 30)},
        ),
        ({"status": {"allocatable": {"koordinator.sh/batch-cpu": "7"}}}, {"offer_cpu_millis": 7.0}),
        ({"status": {"allocatable": {"kubernetes.io/batch-cpu": "x", "kubernetes.io/batch-memory": []}}}, {}),
        ({"status": {"allocatable": ["kubernetes.io/batch-cpu"]}}, {}),
        ({"status": None}, {}),
        ({}, {}),
    ],
)
def test_the_offer_of_a_node_is_read_or_left_out(node: dict[str, Any], wish: Wish) -> None:
    assert node_amounts(node) == wish


class Answers(Kube):
    """An API server that gives what a case says, or refuses."""

    def __init__(self, answers: dict[str, Document]) -> None:
        super().__init__()
        self.answers, self.asked = answers, 0

    async def call(self, method: str, path: str, **_: Any) -> Document:
        self.asked += 1
        if path not in self.answers:
            raise KubeError(f"{method} {path}", 403, {"message": "events is forbidden"})
        return self.answers[path]


def test_a_node_is_read_now_and_then_and_not_known_while_it_cannot_be(virtual: Virtual) -> None:
    async def read() -> tuple[Wish, int, Wish, str]:
        kube = Answers({"/api/v1/nodes/n1": {"status": {"allocatable": {"kubernetes.io/batch-cpu": "7"}}}})
        offer = KoordinatorOffer(kube, "n1", LoopClock())
        for _ in range(9):
            first = await offer.amounts()
            await asyncio.sleep(1)
        asked = kube.asked
        kube.answers = {}
        await asyncio.sleep(2)
        return first, asked, await offer.amounts(), offer.failure

    first, asked, then, failure = virtual(read())
    assert (first, asked, then) == ({"offer_cpu_millis": 7.0}, 1, {})
    assert "forbidden" in failure


def intent(number: int, mode: str = "dry-run") -> dict[str, Any]:
    return {"intent": {"intent_id": str(number), "mode": mode, "namespace": "ns", "pod": f"p{number}"}}


def event(number: int, host: str = "n1") -> dict[str, Any]:
    about = {"namespace": "ns", "name": f"q{number}"}
    return {"metadata": {"uid": str(number)}, "involvedObject": about, "source": {"host": host}}


def test_evictions_from_before_and_of_other_nodes_do_not_count(virtual: Virtual) -> None:
    events = "/api/v1/events"

    async def watched() -> EvictionsSeen:
        ours: list[dict[str, Any]] = [intent(1)]
        kube = Answers({events: {"items": [event(1)]}})

        async def ask() -> dict[str, Any]:
            return {"recent": ours}

        watch = EvictionWatch(ask, kube, "n1", LoopClock())
        await watch.update()
        ours.extend([intent(2), intent(3, "enforce")])
        kube.answers[events] = {"items": [event(1), event(2), event(3, "n2")]}
        await watch.update()
        before = watch.seen()
        await watch.update(now=True)
        assert (before.ours, before.theirs) == ((), ())
        return watch.seen()

    assert virtual(watched()) == EvictionsSeen(("ns/p2",), ("ns/q2",))


def test_evictions_that_nobody_may_read_are_not_none(virtual: Virtual) -> None:
    async def watched() -> EvictionsSeen:
        async def ask() -> None:
            return None

        watch = EvictionWatch(ask, Answers({}), "n1", LoopClock())
        await watch.update()
        return watch.seen()

    seen = virtual(watched())
    assert (seen.ours, seen.theirs) == (None, None)
    assert "name one who may read events" in seen.why
    assert "theirs not known" in comparison_table(Comparison(), seen, 1.0)


@pytest.mark.parametrize("state", [None, {}, {"recent": None}, {"recent": 3}, {"recent": [None, 3, {}, {"intent": 3}]}])
def test_a_state_that_says_nothing_is_read(state: Any) -> None:
    assert not rehearsed(state)


@pytest.mark.parametrize("events", [{}, {"items": None}, {"items": []}, {"items": [{}]}])
def test_a_list_of_events_that_says_nothing_is_read(events: Any) -> None:
    assert len(evicted(events, "n1")) <= 1


def test_a_comparison_is_printed_for_people_and_programs() -> None:
    found = Comparison()
    found.add(
        {"cpu_cores": 4.0, "offer_cpu_millis": 4000.0, "offer_memory_bytes": float(4 << 30)},
        {"cpu_cores": 6.0, "offer_cpu_millis": 3000.0, "offer_memory_bytes": float(4 << 30)},
    )
    seen = EvictionsSeen(tuple(f"ns/p{n}" for n in range(7)), ())
    lines = comparison_table(found, seen, 3600.0).splitlines()
    assert lines[1].split("   ")[0] == "CPU of best-effort pods"
    assert "+2.00 cores" in lines[1]
    assert "-1.00 cores" in lines[2]
    assert "4.00 GiB" in lines[3]
    assert lines[-2].startswith("1 moments in 1h0m; at 0")
    assert lines[-1].endswith("ours would have been 7 (ns/p0, ns/p1, ns/p2, ns/p3, ns/p4 and 2 more)")
    document = comparison_document(found, seen, 3600.0)
    assert [row["quantity"] for row in document["quantities"]] == [
        "cpu_cores",
        "offer_cpu_millis",
        "offer_memory_bytes",
    ]
