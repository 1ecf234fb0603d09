"""kill -9 of the evictor, of NATS and of pods' watchers, one after the other without a rest, while pods are evicted.

At the end the history must be whole: every eviction that began has ended once, nothing is lost or doubled, and nobody
but the pods that broke the rule was evicted.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from eager_evictor import EAGER
from stored_events import event_in
from until_met import until_met

from shared.adapters.clock import SystemClock
from shared.adapters.ledger.reader import read_ledger
from shared.adapters.nats.bus import NatsBus, connect
from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
from shared.core.evictions.intents import FINAL_STEPS
from shared.errors import SubletError
from shared.settings import CommonSettings
from sublet.commands.audit import audited
from sublet.host.preflight import check_host
from sublet.host.session import Session

KILLS = int(os.environ.get("STORM_KILLS", "100"))
PATIENCE_S = 120.0
ABREAST, WAVE = 2, 30
"""Greedy pods at a time, and in a wave. After it all go: the evictor stops a plugin that never brings relief."""
LONGEST_PAUSE_S, LOOK_S = 3.0, 0.2
LONGER = "86400"
"""Seconds that a pod sleeps: longer than any storm, or its end would look like an eviction."""
TARGETS = ("evictor", "evictor", "nats", "watcher")
# A request of 100 CPUs breaks the over-commit rule on any small machine; 10 milli-cores do not.
GREEDY = ["--qos", "reclaimed", "--cpu", "100", "--memory", "16Mi", "--grace-period", "1"]
MODEST = ["--qos", "shared", "--cpu", "10m", "--memory", "16Mi"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.usefixtures("quick_restarts"),
    pytest.mark.timeout(PATIENCE_S * 3 + KILLS * 6),
    pytest.mark.skipif(bool(check_host(CommonSettings())), reason="needs root and writable cgroups"),
]


class Storm:
    """Pods that come and are evicted, and somebody who kills."""

    def __init__(self, session: Session, state_dir: Path) -> None:
        self._session, self._state_dir, self._chance = session, state_dir, random.Random("storm")
        self._env = {**os.environ, "SUBLET_STATE_DIR": str(state_dir)}
        self._watchers: dict[str, asyncio.subprocess.Process] = {}
        self._over = False
        self.news = asyncio.Event()
        self.killed: Counter[str] = Counter()
        self.fed = 0

    async def start_pod(self, name: str, options: list[str]) -> asyncio.subprocess.Process:
        words = [sys.executable, "-m", "sublet", "run", *options, "--name", name, "--", "sleep", LONGER]
        quiet = asyncio.subprocess.DEVNULL
        return await asyncio.create_subprocess_exec(*words, env=self._env, stdin=quiet, stderr=quiet)

    async def feed(self) -> None:
        """Greedy pods in waves, until the kills are done."""
        while not self._over:
            for _ in range(WAVE // ABREAST):
                if not self._over:
                    await asyncio.gather(*(self._greedy() for _ in range(ABREAST)))
            while not self._may_go_on():
                await asyncio.sleep(LOOK_S)

    def _may_go_on(self) -> bool:
        """The kills are done, or the next wave may come."""
        return self._over or self._relieved()

    def _relieved(self) -> bool:
        """The evictor has seen that no pressure is left."""
        with contextlib.closing(sqlite3.connect(f"file:{self._state_dir}/ledger.db?mode=ro", uri=True)) as ledger:
            return bool(ledger.execute("SELECT coalesce(max(without_relief), 0) FROM plugins").fetchone() == (0,))

    async def _greedy(self) -> None:
        self.fed += 1
        name = f"greedy-{self.fed}"
        pod = self._watchers[name] = await self.start_pod(name, GREEDY)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(pod.wait(), 5.0)
        self._watchers.pop(name)

    async def kill(self, times: int) -> None:
        """So many processes, most of them right after something was said about an eviction."""
        while self.killed.total() < times:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), self._chance.uniform(0.5, LONGEST_PAUSE_S))
            await asyncio.sleep(self._chance.uniform(0.0, 0.3))
            what = self._chance.choice(TARGETS)
            pid = self._pid(what)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.killed[what] += 1
            self.news.clear()
        self._over = True

    def hear(self, subject: str) -> None:
        """A moment worth dying in."""
        if ".intent." in subject or ".event." in subject:
            self.news.set()

    def _pid(self, what: str) -> int | None:
        if what == "watcher":
            alive = sorted(name for name, pod in self._watchers.items() if pod.returncode is None)
            return self._watchers[self._chance.choice(alive)].pid if alive else None
        server = self._session.server
        return self._session.children[what].pid if what != "nats" else server.pid if server else None


@pytest.fixture
def summary(capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, object]]:
    """What was done, printed at the end whatever came of it."""
    facts: dict[str, object] = {}
    yield facts
    with capsys.disabled():
        print(f"\nstorm: {json.dumps(facts)}")


async def at_rest(bus: NatsBus, state_dir: Path) -> bool:
    """Every intent in the ledger has ended, and everything has been sent."""
    try:
        ledger = read_ledger(state_dir)
        found = await audited(bus, state_dir)
    except SubletError:  # not connected again yet
        return False
    return bool(ledger) and found.open == found.waiting == 0 and all(entry.step in FINAL_STEPS for entry in ledger)


async def test_a_storm_of_kills_leaves_a_whole_history(tmp_path: Path, summary: dict[str, object]) -> None:
    state_dir, settings = tmp_path / "state", tmp_path / "settings.yaml"
    settings.write_text(json.dumps(EAGER))
    session = Session(
        CommonSettings(state_dir=state_dir, node="storm"),
        nats_port=0,
        say=lambda _line: None,
        extra_env={"SUBLET_CONFIG": str(settings)},
    )
    await session.start()
    bus = await connect(session.nats_url or "", name="storm", connect_timeout_s=10.0, clock=SystemClock())
    storm = Storm(session, state_dir)
    await bus.subscribe("sublet.cluster.v1.>", lambda received: storm.hear(received.subject))
    try:
        bystander = await storm.start_pod("bystander", MODEST)
        feeding = asyncio.create_task(storm.feed())
        await storm.kill(KILLS)
        await feeding
        await until_met(lambda: at_rest(bus, state_dir), limit_s=PATIENCE_S)  # every eviction came to its end
        found = await audited(bus, state_dir)
        events = [event_in(stored) for stored in await bus.replay(EVENTS_STREAM, event_filter())]
        wrong = sorted({event.pod for event in events if not event.pod.startswith("greedy-")})
        faults = Counter(fault.kind for fault in found.faults)
        summary |= {
            "kills": storm.killed.total(),
            "of": dict(sorted(storm.killed.items())),
            "pods": storm.fed,
            "evictions": found.intents,
            "succeeded": sum(event.phase == "succeeded" for event in events),
            "lost": faults["lost"],
            "doubled": faults["doubled"],
            "wrong": faults["wrong_pod"] + len(wrong),
        }
        assert found.faults == ()
        assert wrong == []
        assert summary["succeeded"]
        assert bystander.returncode is None
        bystander.terminate()
        await bystander.wait()
    finally:
        await bus.drain()
        left = await session.stop()
    assert left == []
