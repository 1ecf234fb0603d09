"""A life of an evictor whose ledger lies on a disk of 1 MB. Run in a mount namespace of its own:

    unshare --mount python small_disk.py before|rehearsal|call|read-only FOLDER

Prints, as JSON, what was seen while the disk was not usable and after it was again. Time is virtual.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import looptime
import structlog
from evictor_world import Node, overcommitted
from present import present

from shared.fakes.fake_evictor import FakeEvictor

DISK = "1m"


class Breaks(FakeEvictor):
    """Something happens to the disk at the first call of one kind, right after it had its effect."""

    def __init__(self, of: FakeEvictor, *, dry_run: bool, then: Callable[[], None]) -> None:
        super().__init__(of.clock, of.pods)
        self._when, self._then, self._done = dry_run, then, False

    async def evict(self, pod: Any, *, dry_run: bool = False, **how: Any) -> Any:
        answer = await super().evict(pod, dry_run=dry_run, **how)
        if dry_run is self._when and not self._done:
            self._done = True
            self._then()
        return answer


class SmallDisk:
    """A tmpfs that can be filled and emptied, or made read-only."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=True)

    def fill(self) -> None:
        with contextlib.suppress(OSError), self._ballast.open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(1024))

    def empty(self) -> None:
        self._ballast.unlink()

    def set(self, mode: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{mode}", self.folder], check=True)


def seen(world: Node) -> dict[str, Any]:
    health = present(world.app).health()
    return {"ok": health.ok, "why": health.why, "calls": [kind for kind, *_ in world.evictor.calls],
            "kills": len(world.evictor.kills), "phases": [phase for _, phase in world.story],
            "outbox": world.state()["outbox"],
            "conditions": [condition["type"] for condition in world.state()["conditions"]]}  # fmt: skip


async def story(scenario: str, disk: SmallDisk) -> list[dict[str, Any]]:
    world = await overcommitted(Node(disk.folder))
    usable_again = disk.empty
    match scenario:
        case "before":
            disk.fill()
        case "read-only":
            disk.set("ro")

            def usable_again() -> None:
                disk.set("rw")

        case _:
            world.evictor = Breaks(world.evictor, dry_run=scenario == "rehearsal", then=disk.fill)
    async with world.life():
        await world.tick(6)
        broken = seen(world)
        usable_again()
        await world.tick(25)
        return [broken, seen(world)]


def main() -> None:
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(sys.stderr))
    disk = SmallDisk(Path(sys.argv[2]))
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        print(json.dumps(runner.run(story(sys.argv[1], disk))))


if __name__ == "__main__":
    main()
