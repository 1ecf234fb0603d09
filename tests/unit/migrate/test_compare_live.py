"""`compare_here`: both agents of this node, over its bus and its cgroups."""

import asyncio
from pathlib import Path

import pytest
from compare_messages import advice, allocation

from shared.adapters.clock import SystemClock
from shared.errors import Refused, SubletError, Unavailable
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire
from sublet.ask import AskTarget
from sublet.migrate.compare import live
from sublet.migrate.compare.live import Found, compare_here

SHORT_S = 0.01


@pytest.fixture(autouse=True)
def _host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "sys/fs/cgroup"
    for controller, file, text in (("cpuset", "cpuset.effective_cpus", "0-3\n"), ("cpu", "cpu.cfs_quota_us", "-1\n")):
        group = root / controller / "kubepods/besteffort"
        group.mkdir(parents=True)
        (group / file).write_text(text)
    monkeypatch.setenv("SUBLET_HOST_ROOT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


async def compared(*, speaks: bool = True, enforces: bool = False) -> Found:
    broker, clock = MemoryBroker(), SystemClock()
    writer = Wire(MemoryBus(broker, clock), clock, node="n1", service="qrm")
    work = asyncio.ensure_future(
        compare_here(MemoryBus(broker, clock), AskTarget("n1", ""), SHORT_S, None, lambda _passed_s, _moments: None)
    )
    await asyncio.sleep(0)
    if speaks:
        await writer.publish(advice())
        await writer.publish(allocation("enforce" if enforces else "dry-run"))
    return await work


def test_the_node_is_compared_and_every_moment_counts() -> None:
    found, evictions, _ = asyncio.run(compared())
    (row,) = found.rows()
    assert (row.quantity, row.theirs_mean, row.ours_mean) == ("cpu_cores", 4.0, 6.0)
    assert (evictions.ours, evictions.theirs) == (None, None)
    assert "no way to the API server" in evictions.why


@pytest.mark.parametrize(
    ("speaks", "enforces", "error", "words"),
    [
        (False, False, Unavailable, "Sublet on n1 says nothing: see `sublet status`"),
        (True, True, Refused, "node n1: Sublet enforces there"),
    ],
)
def test_what_cannot_be_compared_is_said(
    monkeypatch: pytest.MonkeyPatch, speaks: bool, enforces: bool, error: type[SubletError], words: str
) -> None:
    if not speaks:
        monkeypatch.setattr(live, "PATIENCE_S", SHORT_S)
    with pytest.raises(error, match=words):
        asyncio.run(compared(speaks=speaks, enforces=enforces))
