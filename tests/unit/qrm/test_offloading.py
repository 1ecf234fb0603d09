"""Offloading in qrm: off by default, only for the classes named, only while qrm may write at all."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from plain_cgroups import PlainCgroups
from qrm_world import Node, Run

from shared.contracts.advice import CacheDrop
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import pod_group

MIB = 1 << 20
QUIET = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0"
BATCH = Pod(uid="b1", name="batch", qos="reclaimed_cores")
WEB = Pod(uid="a1", name="web", qos="shared_cores")


def world(folder: Path, **qrm: Any) -> Node:
    plain = PlainCgroups(folder / "host", version=2)
    plain.add_classes()
    node = Node(folder, plain=plain, **qrm)
    node.pods.known = [BATCH, WEB]
    for pod in node.pods.known:
        group = pod_group(pod)
        plain.add(group)
        plain.set(group, "memory.current", str(1024 * MIB))
        plain.set(group, "memory.stat", "anon 0\ninactive_file 0\nworkingset_refault_file 7")
        plain.set(group, "memory.pressure", QUIET)
        plain.set(group, "memory.reclaim", "")
    return node


def asked(node: Node, pod: Pod) -> str:
    return node.plain.get(pod_group(pod), "memory.reclaim")


async def threads_done() -> None:
    """What was handed to a thread before is done, and whoever waited for it has gone on."""
    for _ in range(5):
        await asyncio.get_running_loop().run_in_executor(None, int)
        await asyncio.sleep(0.01)


def one_thread() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))


@pytest.mark.parametrize(
    ("settings", "batch", "web"),
    [
        ({}, False, False),
        ({"offload": {"enabled": True}}, True, False),
        ({"offload": {"enabled": True, "classes": ["shared_cores"]}}, False, True),
        ({"offload": {"enabled": True}, "mode": "observe"}, False, False),
    ],
    ids=["default", "on", "for tenants", "qrm only observes"],
)
def test_who_is_asked_for_memory(
    tmp_path: Path, virtual: Run, settings: dict[str, dict[str, bool | list[str]] | str], batch: bool, web: bool
) -> None:
    async def story() -> None:
        one_thread()
        async with world(tmp_path, **settings) as node:
            for _ in range(8):
                await node.hear(node.advice(6, 42))
                await asyncio.sleep(5)
                await threads_done()
            assert (asked(node, BATCH) != "", asked(node, WEB) != "") == (batch, web)

    virtual(story())


@pytest.mark.parametrize(
    ("whose", "settings", "dropped"),
    [(BATCH, {}, True), (WEB, {}, False), (BATCH, {"mode": "dry-run"}, False)],
    ids=["a reclaimed pod", "a tenant never", "qrm does not write"],
)
def test_page_cache_goes_as_advised(
    tmp_path: Path, virtual: Run, whose: Pod, settings: dict[str, str], dropped: bool
) -> None:
    async def story() -> None:
        one_thread()
        async with world(tmp_path, **settings) as node:
            await node.hear(node.advice(6, 42, drop_cache=(CacheDrop(uid=whose.uid, bytes=5 * MIB),)))
            await threads_done()
            assert (asked(node, whose) == str(5 * MIB)) is dropped

    virtual(story())
