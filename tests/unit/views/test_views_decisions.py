"""`sublet explain` shows what the cluster decided about an object, of every area, the newest first."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from fixture_types import Virtual

from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import DECISIONS_STREAM, STREAMS, decision_subject
from shared.contracts.cluster.decision import DecidedObject, Decision
from shared.contracts.envelope import Reason
from shared.fakes.memory_bus import MemoryBus
from shared.ports import DurableMessage
from shared.wire import Wire
from sublet import ask
from sublet.ask import AskTarget
from sublet.commands import explain
from sublet.commands.explain import EXPLANATION, WantedObject

POD = DecidedObject(kind="pod", namespace="team-a", name="encode", uid="1f3a-5b")
NODE = DecidedObject(kind="node", name="n1.local")
WHY = (Reason(rule="reclaimed_fit", numbers={"node": "n1", "asked_millis": 4000}),)
Show = Callable[..., int]


async def bus_with(*decided: tuple[str, DecidedObject, str]) -> MemoryBus:
    """A bus on which these decisions were said: area, object and verdict."""
    bus = MemoryBus()
    (spec,) = (one for one in STREAMS if one.name == DECISIONS_STREAM)
    await bus.ensure_stream(spec)
    wire = Wire(bus, LoopClock(), node="central-0", service="central")
    for number, (area, about, verdict) in enumerate(decided):
        decision = wire.stamp(Decision, area=area, about=about, verdict=verdict, message=f"since {number}", why=WHY)
        await bus.publish_durable(DurableMessage(decision_subject(area, about), decision.encode(), f"{number}"))
    return bus


@pytest.fixture(autouse=True)
def nobody_else_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "ANSWER_TIMEOUT_S", 0.01)


def shown(virtual: Virtual, *decided: tuple[str, DecidedObject, str], output: str = "table", **what: Any) -> int:
    async def story() -> int:
        bus, where, form = await bus_with(*decided), AskTarget("n1", ""), EXPLANATION.read(output)
        if "kind" in what:
            wanted = WantedObject(what["kind"], what.get("namespace"), what["name"])
            return await explain._explain_object(bus, where, wanted=wanted, output=form)
        return await explain._explain_pod(bus, where, output=form, **{"namespace": "team-a", **what})

    code: int = virtual(story())
    return code


def test_a_pod_that_runs_nowhere_is_explained_by_what_was_decided(
    virtual: Virtual, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(virtual, ("scheduling", POD, "refused"), name="encode") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("scheduling: pod/team-a/encode refused: since 0")
    assert second.strip() == "reclaimed_fit: node n1, asked_millis 4000"


def test_of_each_area_the_newest_few_are_shown_and_all_as_json(
    virtual: Virtual, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [("tide", NODE, f"step_{number}") for number in range(5)] + [("overcommit", NODE, "ratio_set")]
    assert shown(virtual, *said, kind="node", name="n1.local") == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if "node/n1.local" in line]
    assert [line.split("node/n1.local ")[1].split(":")[0] for line in heads] == [
        "ratio_set", "step_4", "step_3", "step_2"
    ]  # fmt: skip
    assert shown(virtual, *said, kind="node", name="n1.local", output="json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in document["decisions"]] == ["ratio_set", *(f"step_{n}" for n in (4, 3, 2, 1, 0))]
    assert document["decisions"][0]["why"] == [WHY[0].model_dump(mode="json")]
    assert document["decisions"][0]["by"] == "central-0"


def test_another_object_of_the_name_is_another(virtual: Virtual, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(virtual, ("scheduling", POD, "refused"), name="encode", namespace="team-b") == 1
    assert "no pod team-b/encode is known" in capsys.readouterr().err
    assert shown(virtual, ("scheduling", POD, "refused"), kind="node", name="encode") == 1
    assert "nothing was decided about node encode" in capsys.readouterr().err


def test_an_object_of_a_namespace_is_found_without_it(virtual: Virtual, capsys: pytest.CaptureFixture[str]) -> None:
    about = DecidedObject(kind="resourcerecommend", namespace="team-a", name="shop")
    said = ("recommendation", about, "provided")
    assert shown(virtual, said, kind="resourcerecommend", name="shop") == 0
    assert shown(virtual, said, kind="resourcerecommend", name="shop", namespace="team-a") == 0
    assert shown(virtual, said, kind="resourcerecommend", name="shop", namespace="team-b") == 1


def test_what_somebody_else_put_there_is_left_out_and_said(
    virtual: Virtual, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> int:
        bus = await bus_with(("tide", NODE, "drained"))
        forged = (await bus.replay(DECISIONS_STREAM, ">"))[0].data.replace(b'"tide"', b'"scheduling"')
        subject = decision_subject("tide", NODE)
        for number, data in enumerate((forged, b"\x1b[31m", b"{}")):
            await bus.publish_durable(DurableMessage(subject, data, f"x{number}"))
        return await explain._explain_object(
            bus, AskTarget("n1", ""), wanted=WantedObject("node", None, "n1.local"), output=EXPLANATION.read("table")
        )

    assert virtual(story()) == 0
    told = capsys.readouterr()
    assert "3 messages about node n1.local are no decisions" in told.err
    assert "scheduling" not in told.out


def test_no_decision_reaches_the_terminal_as_it_was_written(
    virtual: Virtual, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> int:
        bus = await bus_with()
        wire = Wire(bus, LoopClock(), node="central-0", service="central")
        hostile = wire.stamp(Decision, area="tide", about=NODE, verdict="drained", message="\x1b[31mred\x07")
        await bus.publish_durable(DurableMessage(decision_subject("tide", NODE), hostile.encode(), "1"))
        return await explain._explain_object(
            bus, AskTarget("n1", ""), wanted=WantedObject("node", None, "n1.local"), output=EXPLANATION.read("table")
        )

    assert virtual(story()) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_without_the_stream_or_the_bus_a_pod_is_explained_as_far_as_it_goes(
    virtual: Virtual, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> int:
        bus = MemoryBus()
        bus.go_offline()
        return await explain._explain_object(
            bus, AskTarget("n1", ""), wanted=WantedObject("node", None, "n1.local"), output=EXPLANATION.read("table")
        )

    assert virtual(story()) == 1
    assert "what the cluster decided is not known here" in capsys.readouterr().err
