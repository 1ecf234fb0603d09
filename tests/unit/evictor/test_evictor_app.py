"""The evictor from sample to event, on a bus in memory and in virtual time."""

import asyncio
import json
import sys

import pytest
from evictor_world import CPU_SCOPE, GIB, MEMORY, RECLAIMED, Node, pod

from services.evictor import plugins as plugin_folder
from shared.contracts.eviction import EvictionIntent
from shared.contracts.subjects import intent_subject
from shared.errors import BadConfig, Conflict
from shared.ports import ActionResult

LARGE, SMALL, WEB = pod("large", cpu=24_000), pod("small", cpu=12_000), pod("web", "shared_cores")


@pytest.fixture
def node(tmp_path):
    return lambda **section: Node(tmp_path / "state", **section)


async def overcommitted(node: Node) -> Node:
    """The tutorial's moment: 36k asked for, 4k left."""
    await node.create_streams()
    node.run(LARGE, SMALL, WEB)
    node.offered_millis = 4_000
    return node


async def short_of_memory(node: Node, *pods, free_bytes: int = GIB // 2) -> Node:
    await node.create_streams()
    node.run(*pods)
    node.free_bytes = free_bytes
    return node


def test_the_tutorials_overcommit_evicts_the_largest_request_and_tells_every_step(node, virtual):
    async def main():
        world = await overcommitted(node())
        async with world.life():
            await world.tick(3)
            recent, told = world.state()["recent"][0], world.state()["events"]
        assert world.evictor.kills == [LARGE.uid]
        assert told == [{"event_id": e.event_id, "published": True} for e in world.events]
        assert world.story == [("large", "intended"), ("large", "created"), ("large", "succeeded")]
        created = world.events[1]
        assert created.message == (
            f"Successfully create eviction; reason: met threshold in scope: {CPU_SCOPE} from plugin: {RECLAIMED}"
        )
        assert (created.observed, created.threshold, created.grace_s) == (36_000, 20_000, 5.0)
        assert [i.intent_id for i in world.intents] == [created.intent_id]
        assert world.evictor.calls == [("dry-run", LARGE.uid, 5.0), ("evict", LARGE.uid, 5.0)]
        assert recent["step"] == "succeeded"
        assert recent["intent"]["why"][0]["numbers"]["offered"] == 4_000
        assert [c["what"] for c in recent["calls"]] == ["dry-run", "evict"]

    virtual(main())


def test_one_sample_is_never_enough(node, virtual):
    async def main():
        world = await overcommitted(node())
        async with world.life():
            for _ in range(3):
                await world.tick()
                world.offered_millis = 44_000
                await world.tick()
                world.offered_millis = 4_000
            assert world.state()["plugins"][RECLAIMED]["hold"] == "not_met"
        assert world.evictor.kills == []

    virtual(main())


def test_samples_too_far_apart_are_not_in_a_row(node, virtual):
    async def main():
        world = await overcommitted(node())
        async with world.life():
            for _ in range(3):
                await world.tick()
                await asyncio.sleep(6)
                assert not world.app.health().ok
        assert world.evictor.kills == []

    virtual(main())


@pytest.mark.parametrize("status", ["held", "floor", "failed", "dry-run"])
def test_an_offer_that_no_advice_stands_behind_evicts_nobody(node, virtual, status):
    async def main():
        world = await overcommitted(node())
        world.allocation_status = status
        async with world.life():
            await world.tick(5)
            assert world.state()["plugins"][RECLAIMED]["finding"] == "unknown"
        assert world.evictor.kills == []

    virtual(main())


def test_an_offer_that_has_grown_stale_evicts_nobody(node, virtual):
    async def main():
        world = await overcommitted(node())
        async with world.life():
            await world.tick()
            world.offered_millis = None
            await asyncio.sleep(15)
            await world.tick(5)
        assert world.evictor.kills == []

    virtual(main())


def test_memory_pressure_evicts_reclaimed_pods_and_never_a_tenant_before_them(node, virtual):
    async def main():
        world = await short_of_memory(node(cooling_s=0), WEB, SMALL, LARGE)
        world.used |= {WEB.uid: 40 * GIB, LARGE.uid: 2 * GIB}
        async with world.life():
            await world.tick(2)
            conditions = [c["type"] for c in world.state()["conditions"]]
            await world.tick(20)
        assert conditions == ["MemoryPressure"]
        # All evicted reclaimed pods come first; the tenant goes only after steps enough for "all", and as the last.
        assert world.evictor.kills == [LARGE.uid, SMALL.uid, WEB.uid]

    virtual(main())


def test_a_tenant_waits_while_a_reclaimed_pod_is_on_its_way_out(node, virtual):
    async def main():
        world = await short_of_memory(node(cooling_s=0), WEB, SMALL)
        world.evictor.lives_on_s = 3600
        async with world.life():
            await world.tick(60)
            spared = world.state()["plugins"][MEMORY]["spared"]
        assert world.evictor.kills == [SMALL.uid]
        assert spared["default/web"] == "tenant_before_reclaimed"

    virtual(main())


def test_evictions_of_one_plugin_cool_down(node, virtual):
    async def main():
        world = await short_of_memory(node(), SMALL, LARGE)
        async with world.life():
            await world.tick(10)
            assert len(world.evictor.kills) == 1
            assert world.state()["plugins"][MEMORY]["hold"] == "cooling"
            await world.tick(10)
        assert len(world.evictor.kills) == 2

    virtual(main())


def test_three_evictions_without_relief_stop_the_plugin_until_the_pressure_has_gone(node, virtual):
    pods = [pod(f"batch-{i}") for i in range(6)]

    async def main():
        world = await short_of_memory(node(cooling_s=1), *pods)
        async with world.life():
            await world.tick(20)
            assert len(world.evictor.kills) == 3
            assert "EvictionIneffective" in [c["type"] for c in world.state()["conditions"]]
        async with world.life():  # a restart does not forget it
            await world.tick(5)
            assert len(world.evictor.kills) == 3
            world.free_bytes = None
            await world.tick(2)  # silence is no relief
            world.free_bytes = GIB // 2
            await world.tick(5)
            assert len(world.evictor.kills) == 3
            world.free_bytes = 50 * GIB
            await world.tick()
            assert world.state()["conditions"] == []
            world.free_bytes = GIB // 2
            await world.tick(3)
        assert len(world.evictor.kills) > 3

    virtual(main())


def test_the_rate_is_bounded_also_across_restarts(node, virtual):
    pods = [pod(f"batch-{i:02}") for i in range(40)]

    async def main():
        section = {"cooling_s": 0, "max_without_relief": 100, "evictions_per_minute": 4}
        world = await short_of_memory(node(**section), *pods)
        for _ in range(4):
            async with world.life():
                await world.tick(6)
        assert len(world.evictor.kills) == 4 + 1  # what may come at once, and one every 15 s

    virtual(main())


def test_observe_only_looks_and_dry_run_goes_as_far_as_the_rehearsal(node, virtual):
    async def main():
        modes = {"memory_pressure": {"mode": "observe"}, "reclaimed_overcommit": {"mode": "dry-run"}}
        world = await overcommitted(node(plugins=modes))
        world.free_bytes = GIB // 2
        async with world.life():
            await world.tick(60)
            state = world.state()["plugins"]
        assert state[MEMORY]["hold"] == "observe"
        assert {kind for kind, *_ in world.evictor.calls} == {"dry-run"}
        assert world.story == [("large", "intended"), ("large", "cancelled")] * 3  # then: ineffective, as it would be
        assert {e.mode for e in world.events} == {"dry-run"}

    virtual(main())


def test_a_plugins_grace_goes_before_the_pods(node, virtual):
    async def main():
        world = await overcommitted(node(plugins={"reclaimed_overcommit": {"grace_period_s": 1}}))
        async with world.life():
            await world.tick(3)
        assert world.evictor.calls[-1] == ("evict", LARGE.uid, 1.0)

    virtual(main())


def test_a_successor_of_the_same_name_is_never_touched(node, virtual):
    async def main():
        world = await overcommitted(node())
        successor = pod("large", cpu=24_000, uid="abc0")
        async with world.life():
            await world.tick()
            # The sample that confirms still shows the old pod; the name belongs to another one by now.
            real, world.evictor.pods = world.evictor.pods, {successor.uid: successor, SMALL.uid: SMALL}
            world.used[successor.uid] = GIB
            gone, world.evictor.pods = world.evictor.pods, real
            world_readings = world.readings()
            world.evictor.pods = gone
            await world.tick(pods=tuple(world_readings))
        assert world.evictor.kills == []
        assert world.story == [("large", "intended"), ("large", "cancelled")]
        assert successor.uid not in {uid for _, uid, _ in world.evictor.calls}

    virtual(main())


def test_a_pod_that_does_not_go_is_reported_as_failed(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.evictor.lives_on_s = 3600
        async with world.life():
            await world.tick(14)
        assert world.story[:3] == [("large", "intended"), ("large", "created"), ("large", "failed")]
        assert world.events[2].message == "Evict failed: eviction request did not complete within 10s"

    virtual(main())


@pytest.mark.parametrize(
    ("answer", "phase", "detail"),
    [
        (ActionResult("wait", "budget web-pdb"), "cancelled", "disruption budget"),
        (ActionResult("refused", "forbidden"), "refused", "forbidden"),
        (ActionResult("failed", "two budgets"), "failed", 'error when evicting pod "large": two budgets'),
        (ActionResult("gone"), "cancelled", "gone before"),
    ],
    ids=lambda value: value.outcome if isinstance(value, ActionResult) else "",
)
@pytest.mark.parametrize("real", [False, True], ids=["dry run", "real call"])
def test_every_answer_of_the_evictor_ends_in_its_own_event(node, virtual, answer, phase, detail, real):
    async def main():
        world = await overcommitted(node())
        (world.evictor.answers if real else world.evictor.rehearsals).append(answer)
        async with world.life():
            await world.tick(2)
        assert world.story[:2] == [("large", "intended"), ("large", phase)]
        assert detail in world.events[1].message

    virtual(main())


def test_a_spent_budget_leads_to_the_next_candidate(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.evictor.rehearsals.append(ActionResult("wait", "budget"))
        async with world.life():
            await world.tick(3)
        assert world.evictor.kills == [SMALL.uid]

    virtual(main())


def test_an_unknown_outcome_is_looked_up_before_anything_is_repeated(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.evictor.answers.append(ActionResult("unknown", "timeout"))
        async with world.life():
            await world.tick(4)
        assert world.evictor.calls.count(("evict", LARGE.uid, 5.0)) == 1  # it had worked, and the lookup says so
        assert world.story == [("large", "intended"), ("large", "created"), ("large", "succeeded")]

    virtual(main())


@pytest.mark.parametrize("second", ["accepted", "gone"])
def test_a_call_without_effect_is_made_again_once_the_pod_was_seen_running(node, virtual, second):
    async def main():
        world = await overcommitted(node())
        world.evictor.unknown_evicts = False
        world.evictor.answers += [ActionResult("unknown", "timeout"), ActionResult(second)]
        async with world.life():
            await world.tick(4)
        assert world.evictor.calls.count(("evict", LARGE.uid, 5.0)) == 2
        assert world.story == [("large", "intended"), ("large", "created"), ("large", "succeeded")]
        assert world.events[-1].attempt == 2

    virtual(main())


def test_an_intent_that_cannot_be_begun_dies_at_its_deadline(node, virtual):
    async def main():
        world = await overcommitted(node(intent_deadline_s=20))
        world.evictor.blind = True
        async with world.life():
            await world.tick(40)
            world.offered_millis = 44_000
            world.evictor.blind = False
            await world.tick(70)
        assert world.evictor.calls == []
        assert world.story[:2] == [("large", "intended"), ("large", "cancelled")]
        assert "not begun within 20 s" in world.events[1].detail

    virtual(main())


def test_without_the_bus_hard_pressure_acts_and_the_events_follow_with_the_same_ids(node, virtual):
    async def main():
        world = await overcommitted(node())
        async with world.life() as app:
            await world.tick()
            world.bus.go_offline()
            # The samples come over the bus as well; here they are handed over by hand.
            app._judge(app._samples.value.model_copy(update={"seq": 100}))
            await asyncio.sleep(5)
            assert world.evictor.kills == [LARGE.uid]
            assert world.events == []
            kept = [e["id"] for e in world.state()["recent"][0]["events"]]
            world.bus.go_online()
            await asyncio.sleep(5)
            assert world.state()["outbox"] == 0
        assert [world.intents[0].intent_id, *(e.event_id for e in world.events)] == kept
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]

    virtual(main())


def test_lost_acknowledgements_store_nothing_twice(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.broker.lose_acks(times=3)
        async with world.life():
            await world.tick(8)
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]
        assert len(world.intents) == 1

    virtual(main())


def foreign(world: Node, **over) -> EvictionIntent:
    fields = {"intent_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12, "namespace": "default", "pod": LARGE.name,
              "pod_uid": LARGE.uid, "qos": LARGE.qos, "plugin": "central", "scope": "lost_node", "episode": 1,
              "epoch": 3}  # fmt: skip
    return world.voices["qrm"].stamp(EvictionIntent, **fields | over)


def test_a_live_intent_of_central_keeps_the_node_from_opening_one(node, virtual):
    async def main():
        world = await overcommitted(node())
        theirs = foreign(world)
        await world.bus.publish_durable(intent_subject(theirs), theirs.encode(), msg_id=theirs.intent_id)
        async with world.life():
            await world.tick(2)
        assert world.story[:2] == [("large", "intended"), ("large", "cancelled")]
        assert [i.intent_id for i in world.intents] == [theirs.intent_id]

    virtual(main())


def test_replayed_and_expired_intents_on_the_stream_do_nothing_by_themselves(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.offered_millis = 44_000
        old = foreign(world, deadline_s=5)
        await world.bus.publish_durable(intent_subject(old), old.encode(), msg_id=old.intent_id)
        async with world.life():
            await world.tick(10)
            assert world.evictor.calls == []
            world.offered_millis = 4_000
            await world.tick(3)  # it does not stand in the way of a new one either
        assert world.evictor.kills == [LARGE.uid]
        assert len(world.intents) == 2

    virtual(main())


def test_a_ledger_that_begins_anew_gives_out_no_known_number(node, virtual, tmp_path):
    async def main():
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


def test_a_broken_ledger_is_moved_aside_and_nobody_is_evicted(node, virtual, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/ledger.db").write_bytes(b"no database at all" * 400)

    async def main():
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


def test_a_ledger_that_cannot_be_opened_holds_everything_until_it_can(node, virtual, tmp_path):
    (tmp_path / "state").write_text("a file where the folder should be")

    async def main():
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


def test_two_evictors_on_one_ledger_cannot_run(node, virtual):
    async def main():
        world = await overcommitted(node())
        async with world.life():
            with pytest.raises(Conflict, match="another evictor"):
                await world.build().run()

    virtual(main())


def test_new_settings_apply_whole_or_not_at_all(node, virtual):
    async def main():
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
            assert list(world.state()["plugins"]) == [MEMORY]
            app.reconfigure({})
            await world.tick(3)
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())


def test_the_state_can_be_asked_for_at_any_time(node, virtual):
    async def main():
        world = await overcommitted(node())
        app = world.build()
        assert "error" in app.state()["recent"][0]
        assert not app.health().ok
        async with world.life():
            await world.tick(3)
            json.dumps(world.app.state())
            assert world.app.health().ok
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
def soft_plugin(tmp_path, monkeypatch):
    """A plugin that is one file in the folder, and no other edit."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/always_soft.py").write_text(SOFT_PLUGIN)
    monkeypatch.setattr(plugin_folder, "__path__", [*plugin_folder.__path__, str(tmp_path / "plugins")])
    yield
    sys.modules.pop(f"{plugin_folder.__name__}.always_soft")
    del plugin_folder.always_soft


def test_a_new_file_in_the_folder_is_a_plugin(soft_plugin, node, virtual):
    async def main():
        world = node(plugins={"always_soft": {"grace_period_s": 3}})
        await world.create_streams()
        world.run(SMALL)
        async with world.life():
            await world.tick(3)
        assert world.evictor.calls[-1] == ("evict", SMALL.uid, 3.0)
        assert world.events[0].plugin == "always-soft"

    virtual(main())


def test_without_the_bus_soft_pressure_evicts_nobody(soft_plugin, node, virtual):
    async def main():
        world = node()
        await world.create_streams()
        world.run(SMALL)
        async with world.life() as app:
            await world.tick()
            world.bus.go_offline()
            app._judge(app._samples.value.model_copy(update={"seq": 100}))
            await asyncio.sleep(1)
            assert world.evictor.calls == []
            world.offered_millis = None
            world.bus.go_online()
            await asyncio.sleep(3)
        assert world.story == [("small", "intended"), ("small", "cancelled")]
        assert world.intents == []

    virtual(main())


def test_an_intent_whose_pressure_has_gone_is_not_carried_out(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.evictor.blind = True
        async with world.life():
            await world.tick(3)
            world.offered_millis = 44_000
            await world.tick(2)
            world.evictor.blind = False
            await world.tick(8)
        assert world.evictor.calls == []
        assert world.events[-1].detail == "the pressure has gone before the eviction began"

    virtual(main())


def test_an_intent_of_a_life_before_waits_for_fresh_evidence(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.evictor.blind = True
        async with world.life():
            await world.tick(3)
        world.evictor.blind = False
        async with world.life():
            await asyncio.sleep(10)
            assert world.evictor.calls == []
            await world.tick(6)
        assert world.evictor.kills == [LARGE.uid]
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]

    virtual(main())


def test_an_ending_that_died_with_the_evictor_is_taken_up_again(node, virtual):
    async def main():
        world = await overcommitted(node())
        world.evictor.lives_on_s = 8
        async with world.life():
            await world.tick(3)
        async with world.life():
            await world.tick(10)
        assert world.evictor.calls.count(("evict", LARGE.uid, 5.0)) == 2
        assert world.evictor.kills == [LARGE.uid]
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]

    virtual(main())
