"""The evictor's ledger, settings and plugins over restarts and changes, in virtual time."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from evictor_world import CPU_LOAD, CPU_SCOPE, LARGE, MEMORY, SMALL, MakeNode, overcommitted
from fixture_types import Virtual
from present import present

from services.evictor import plugins as plugin_folder
from shared.errors import BadConfig, Conflict
from shared.ports import ActionResult


def test_a_ledger_that_begins_anew_gives_out_no_known_number(node: MakeNode, virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.answers.append(ActionResult("failed", "no"))
        async with world.life():
            await world.tick(2)
        for part in (tmp_path / "state").iterdir():
            part.unlink()
        await asyncio.sleep(30)
        async with world.life():
            await world.tick(3)
        ids = [i.intent_id for i in world.intents]
        assert len(ids) == len(set(ids)) == 2
        assert world.story[-1] == ("large", "succeeded")

    virtual(main())


def test_a_broken_ledger_is_moved_aside_and_nobody_is_evicted(node: MakeNode, virtual: Virtual, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/ledger.db").write_bytes(b"no database at all" * 400)

    async def main() -> None:
        world = await overcommitted(node())
        async with world.life() as app:
            await world.tick(30)
            health = app.health()
            assert not health.ok
            assert "moved to ledger.db.broken-1" in health.why
        assert world.evictor.calls == []
        async with world.life() as app:  # the next start has an empty one
            await world.tick(3)
            assert app.health().ok
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())


def test_a_ledger_that_cannot_be_opened_holds_everything_until_it_can(
    node: MakeNode, virtual: Virtual, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")

    async def main() -> None:
        world = await overcommitted(node())
        async with world.life() as app:
            await world.tick(15)
            assert not app.health().ok
            assert world.evictor.calls == []
            (tmp_path / "state").unlink()
            await world.tick(12)
            assert app.health().ok
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())


def test_two_evictors_on_one_ledger_cannot_run(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        async with world.life():
            with pytest.raises(Conflict, match="another evictor"):
                await world.build().run()

    virtual(main())


def test_new_settings_apply_whole_or_not_at_all(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        async with world.life() as app:
            with pytest.raises(BadConfig, match=r"did you mean 'reclaimed_overcommit'"):
                app.reconfigure({"plugins": {"reclaimed_overcomit": {}}})
            with pytest.raises(BadConfig, match=r"confirm_samples"):
                app.reconfigure({"confirm_samples": 1})
            with pytest.raises(BadConfig, match=r"evictor\.plugins\.memory_pressure\.period_s"):
                app.reconfigure({"cooling_s": 1, "plugins": {"memory_pressure": {"period_s": -1}}})
            thresholds = {CPU_SCOPE: 10}
            app.reconfigure({"plugins": {"reclaimed_overcommit": {"eviction_threshold": thresholds}}})
            await world.tick(5)
            assert world.evictor.kills == []  # the tutorial's threshold of 10
            app.reconfigure({"plugins": {"reclaimed_overcommit": {"enabled": False}}})
            assert list(world.state()["plugins"]) == [CPU_LOAD, MEMORY]
            app.reconfigure({})
            await world.tick(3)
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())


def test_the_state_can_be_asked_for_at_any_time(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        app = world.build()
        assert "error" in app.state()["recent"][0]
        assert not app.health().ok
        async with world.life():
            await world.tick(3)
            json.dumps(present(world.app).state())
            assert present(world.app).health().ok
            assert world.state()["outbox"] == 0

    virtual(main())


SOFT_PLUGIN = '''
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure
from shared.contracts.envelope import Reason


class Settings(PluginSettings):
    """None of its own."""


PLUGIN = Plugin(
    name="always-soft",
    settings=Settings,
    start=lambda: None,
    evaluate=lambda memory, view, settings: (memory, Pressure(hard=False, scope="mood", observed=2, threshold=1)),
    rank=lambda view, pressure, settings: tuple(Candidate(p.pod, Reason(rule="as they come")) for p in view.pods),
)
'''


@pytest.fixture
def soft_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A plugin that is one file in the folder, and no other edit."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/always_soft.py").write_text(SOFT_PLUGIN)
    monkeypatch.setattr(plugin_folder, "__path__", [*plugin_folder.__path__, str(tmp_path / "plugins")])
    yield
    sys.modules.pop(f"{plugin_folder.__name__}.always_soft")
    delattr(plugin_folder, "always_soft")


def test_a_new_file_in_the_folder_is_a_plugin(soft_plugin: None, node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = node(plugins={"always_soft": {"grace_period_s": 3}})
        await world.create_streams()
        world.run(SMALL)
        async with world.life():
            await world.tick(3)
        assert world.evictor.calls[-1] == ("evict", SMALL.uid, 3.0)
        assert world.events[0].plugin == "always-soft"

    virtual(main())


def test_without_the_bus_soft_pressure_evicts_nobody(soft_plugin: None, node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = node()
        await world.create_streams()
        world.run(SMALL)
        async with world.life() as app:
            await world.tick()
            world.bus.go_offline()
            app._judge(present(present(app._samples).value).model_copy(update={"seq": 100}))
            await asyncio.sleep(1)
            assert world.evictor.calls == []
            world.offered_millis = None
            world.bus.go_online()
            await asyncio.sleep(3)
        assert world.story == [("small", "intended"), ("small", "cancelled")]
        assert world.intents == []

    virtual(main())
