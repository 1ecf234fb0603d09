"""Host trees and a way to read them, for the tests of metrics."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual

sys.path.insert(0, str(Path(__file__).parents[2] / "trees"))

from kernel_trees import KernelTree
from metrics_world import Scene, Story, running

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LocalTargets
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod


@pytest.fixture(params=[1, 2], ids=["cgroup v1", "cgroup v2"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> KernelTree:
    """A host of 4 CPUs, 2 NUMA nodes and no cgroup of ours yet."""
    made = KernelTree(tmp_path / "host", request.param)
    made.machine()
    made.node()
    return made


@pytest.fixture
def collector(tree: KernelTree) -> Collector:
    """The real sources over the tree; the time stamp of every reading is 0."""
    host = HostReader(tree.root, Cgroups(tree.root))
    return Collector(host, known_sources(), LocalTargets(tree.root), lambda: 0.0)


@pytest.fixture
def make_pod() -> Callable[..., Pod]:
    """A pod by name; its UID is made from the name's bytes."""

    def make(name: str, containers: Sequence[str] = ("main",), **fields: object) -> Pod:
        return Pod(
            uid=name.encode().hex(), name=name, containers=tuple(Container(name=c) for c in containers), **fields
        )

    return make


@pytest.fixture
def scene(virtual: Virtual) -> Scene:
    """Run a test's story over a running service in virtual time."""

    def play(story: Story, settings: dict[str, Any] | None = None) -> None:
        async def whole() -> None:
            async with running(settings) as service:
                await story(service)

        virtual(whole())

    return play
