"""Clock bounds at work: autoscalers get them minute by minute, keep their own, and have them back afterwards."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual

from services.central.core.clock_bounds.autoscaler import AUTOSCALERS, PLAIN, STATUS
from services.central.core.clock_bounds.schedule import MAX_BYTES, SCHEDULE, read_schedule
from shared.errors import Refused

ON = {"kubernetes": {"clock_bounds": {"enabled": True}}}
EARLY = {"cronTab": "2 0 * * *", "minReplicas": 10, "maxReplicas": 50}
LATE = {"cronTab": "4 0 * * *", "minReplicas": 2, "maxReplicas": 9}
TONIGHT = "2025-12-31T23:59:00Z"
"""As a start: what fired the day before does not count."""


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time; it begins at midnight UTC of a Thursday."""
    return playing(virtual)


def schedule(*bounds: Mapping[str, Any], zone: str = "UTC", **more: Any) -> str:
    return json.dumps({"timeZone": zone, "timeBounds": [{"bounds": list(bounds), **more}]})


def put(world: World, text: str | None, name: str = "web", bounds: tuple[int, int] = (3, 20)) -> None:
    annotations = {} if text is None else {SCHEDULE: text}
    meta = {"name": name, "namespace": "shop", "annotations": annotations}
    spec = {"minReplicas": bounds[0], "maxReplicas": bounds[1], "scaleTargetRef": {"kind": "Deployment", "name": name}}
    world.api.put(AUTOSCALERS, {"metadata": meta, "spec": spec})


def edit(world: World, annotations: Mapping[str, str | None], name: str = "web", **spec: int) -> None:
    """Somebody changes an autoscaler; annotations that are None go."""
    there = world.api.documents[AUTOSCALERS, "shop", name]
    kept = {key: text for key, text in (there["metadata"]["annotations"] | annotations).items() if text is not None}
    world.api.put(AUTOSCALERS, {**there, "metadata": {**there["metadata"], "annotations": kept},
                                "spec": there["spec"] | spec})  # fmt: skip


def bounds(world: World, name: str = "web") -> tuple[int, int]:
    spec = world.api.documents[AUTOSCALERS, "shop", name]["spec"]
    return spec["minReplicas"], spec["maxReplicas"]


def annotations(world: World, name: str = "web") -> dict[str, str]:
    found: dict[str, str] = world.api.documents[AUTOSCALERS, "shop", name]["metadata"]["annotations"]
    return found


async def begin(world: World) -> None:
    world.app = world.central()
    await asyncio.sleep(5)


def written(world: World) -> list[tuple[str, str, str]]:
    return [one for one in world.api.writes if one[1] == AUTOSCALERS.plural]


def test_bounds_come_with_the_minute_last_until_the_next_and_are_written_once_each(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY, LATE, start=TONIGHT))
        put(world, None, name="other")
        await begin(world)
        assert bounds(world) == (3, 20)
        assert annotations(world)[STATUS].startswith("no bound is in force (UTC)")
        await asyncio.sleep(116)
        assert bounds(world) == (10, 50)
        assert annotations(world)[STATUS] == "timeBounds[0].bounds[0] '2 0 * * *' (UTC): 10 to 50 replicas"
        await asyncio.sleep(120)
        assert bounds(world) == (2, 9)
        await asyncio.sleep(120)
        assert len(written(world)) == 3
        assert annotations(world, "other") == {}

    play(story, **ON)


def test_its_own_bounds_come_back_when_the_schedule_goes(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY))
        await begin(world)
        assert bounds(world) == (10, 50)
        edit(world, {SCHEDULE: None})
        await asyncio.sleep(2)
        assert bounds(world) == (3, 20)
        assert annotations(world) == {}

    play(story, **ON)


def test_who_edits_the_bounds_meanwhile_edits_those_that_come_back(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY))
        await begin(world)
        edit(world, {}, minReplicas=4, maxReplicas=30)
        await asyncio.sleep(2)
        assert bounds(world) == (10, 50)
        edit(world, {SCHEDULE: None})
        await asyncio.sleep(2)
        assert bounds(world) == (4, 30)

    play(story, **ON)


def test_each_change_is_said_with_its_rule_and_figures(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY))
        await begin(world)
        edit(world, {}, minReplicas=4, maxReplicas=30)
        await asyncio.sleep(2)
        edit(world, {SCHEDULE: "{"})
        await asyncio.sleep(2)
        edit(world, {SCHEDULE: None})
        await asyncio.sleep(2)
        found = await world.decided("clock_bounds")
        # Bounds that somebody has edited are bounded anew, which within a minute is no news.
        plain = {"plain_min_replicas": 3, "plain_max_replicas": 20}
        edited = {"plain_min_replicas": 4, "plain_max_replicas": 30}
        by_clock = {"min_replicas": 10, "max_replicas": 50}
        back = {"min_replicas": 4, "max_replicas": 30}
        assert [(one.verdict, one.why[0].rule, one.why[0].numbers) for one in found] == [
            ("bounded", "cron 2 0 * * *", by_clock | plain | {"time_zone": "UTC"}),
            ("refused", "schedule refused", by_clock | edited),
            ("given_back", "no schedule", back | edited),
        ]
        assert found[0].message == "timeBounds[0].bounds[0] '2 0 * * *' (UTC): 10 to 50 replicas"
        assert found[-1].message == "its schedule is gone: 4 to 30 replicas, its own bounds"

    play(story, **ON)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "malformed"),
        (schedule({"cronTab": "61 * * * *", "minReplicas": 1}), "61"),
        (schedule(EARLY, {"cronTab": "x"}), "'x'"),
        (schedule({**EARLY, "maxReplicas": 5}), "above maxReplicas 5"),
        (schedule(EARLY, zone="Moon/Crater"), "Moon/Crater"),
        (schedule(EARLY, zone="../../etc/passwd"), "etc/passwd"),
        (schedule(EARLY, zone="Europe"), "Europe"),
        (schedule({**EARLY, "minReplicas": -1}), "minReplicas"),
        (schedule({**EARLY, "minReplicas": True}), "minReplicas"),
        (schedule(EARLY, start="tomorrow"), "start"),
        (schedule(EARLY, start="2026-01-01T00:00:00"), "time zone"),
        (schedule(EARLY, unknown=1), "unknown"),
        (schedule(), "bounds"),
        (" " * MAX_BYTES + schedule(EARLY), "at most"),
    ],
)
def test_a_schedule_that_cannot_be_read_changes_nothing_and_is_named(play: Playing, text: str, said: str) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY))
        put(world, schedule(EARLY), name="good")
        await begin(world)
        edit(world, {SCHEDULE: text})
        await asyncio.sleep(130)
        assert bounds(world) == (10, 50)
        assert bounds(world, "good") == (10, 50)
        status = annotations(world)[STATUS]
        assert status.startswith("refused, bounds stay: ")
        if said != "malformed":
            assert said in status
        assert list(world.app.state()["cluster"]["clock_bounds"]["refused"]) == ["shop/web"]
        edit(world, {SCHEDULE: None})
        await asyncio.sleep(2)
        assert bounds(world) == (3, 20)

    play(story, **ON)


def test_what_the_api_server_refuses_is_said_on_the_object_and_holds_up_no_other(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule({"cronTab": "* * * * *", "minReplicas": 0}), name="a")
        put(world, schedule(EARLY), name="b")
        patch = world.api.patch

        async def picky(kind: Any, document: Mapping[str, Any], *, status: bool = False) -> Any:
            if kind == AUTOSCALERS and document.get("spec", {}).get("minReplicas") == 0:
                raise Refused("minReplicas: must be at least 1", reason="Invalid")
            return await patch(kind, document, status=status)

        world.api.patch = picky  # type: ignore[method-assign]
        await begin(world)
        assert bounds(world, "a") == (3, 20)
        assert annotations(world, "a")[STATUS] == "refused, bounds stay: minReplicas: must be at least 1"
        assert bounds(world, "b") == (10, 50)
        assert list(world.app.state()["cluster"]["clock_bounds"]["not_written"]) == ["shop/a"]

    play(story, **ON)


def test_local_time_is_that_of_the_zone(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule({**EARLY, "cronTab": "2 9 * * *"}, zone="Asia/Tokyo", start=TONIGHT), name="east")
        put(world, schedule({**EARLY, "cronTab": "2 9 * * *"}, zone="America/New_York", start=TONIGHT), name="west")
        await begin(world)
        await asyncio.sleep(120)
        assert (bounds(world, "east"), bounds(world, "west")) == ((10, 50), (3, 20))  # 09:02 and 19:02

    play(story, **ON)


def test_a_new_leader_goes_on_with_the_bounds_that_were_kept(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY))
        await begin(world)
        await world.app.close()
        world.app.task.cancel()
        world.app = world.central()
        await asyncio.sleep(60)
        assert bounds(world) == (10, 50)
        assert json.loads(annotations(world)[PLAIN])["plain"] == {"minReplicas": 3, "maxReplicas": 20}
        edit(world, {SCHEDULE: None})
        await asyncio.sleep(2)
        assert bounds(world) == (3, 20)

    play(story, **ON)


def test_an_outage_is_waited_out(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY, start=TONIGHT))
        await begin(world)
        world.api.go_offline()
        await asyncio.sleep(150)
        assert bounds(world) == (3, 20)
        world.api.go_online()
        await asyncio.sleep(70)
        assert bounds(world) == (10, 50)

    play(story, **ON)


def test_while_everything_observes_nothing_is_written(play: Playing) -> None:
    async def story(world: World) -> None:
        world.switch.mode = "observe"
        put(world, schedule(EARLY))
        await begin(world)
        assert written(world) == []
        assert world.app.state()["cluster"]["clock_bounds"]["would_write"] == ["shop/web"]

    play(story, **ON)


def test_nothing_is_followed_unless_it_is_switched_on(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY))
        await begin(world)
        assert written(world) == []
        assert "clock_bounds" not in world.app.state()["cluster"]

    play(story)


def test_what_is_kept_and_cannot_be_read_counts_as_not_there(play: Playing) -> None:
    async def story(world: World) -> None:
        put(world, schedule(EARLY))
        edit(world, {PLAIN: '{"plain": {"minReplicas": 9, "maxReplicas": 1}, "written": 3}'})
        await begin(world)
        assert bounds(world) == (10, 50)
        edit(world, {SCHEDULE: None})
        await asyncio.sleep(2)
        assert bounds(world) == (3, 20)

    play(story, **ON)


def test_a_schedule_of_upstreams_fields_is_read() -> None:
    found = read_schedule(schedule(EARLY, start="2026-01-01T00:00:00Z", end="2026-02-01T00:00:00+01:00"))
    (one,) = found.time_bounds
    assert (one.start_s, one.end_s) == (1767225600, 1769900400)
    assert [bound.cron for bound in one.bounds] == ["2 0 * * *"]
