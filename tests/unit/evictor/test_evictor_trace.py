"""An eviction stays in the trace of its sample, also where the evictor is started anew in its midst."""

from collections.abc import Iterator

import pytest
from evictor_world import MakeNode, overcommitted
from fixture_types import Virtual
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from present import present

from shared import telemetry
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry.use_tracer(provider.get_tracer("test"))
    yield exporter
    telemetry.use_tracer(None)


def test_an_eviction_that_a_restart_interrupts_ends_in_the_trace_in_which_it_began(
    node: MakeNode, virtual: Virtual, spans: InMemorySpanExporter
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.lives_on_s = 2.5
        async with world.life():
            await world.tick()  # the rule takes two samples
            with telemetry.span("metrics.pass"):
                await world.tick()
        assert world.story == [("large", "intended"), ("large", "created")]
        async with world.life():
            await world.tick(3)
        assert world.story[-1] == ("large", "succeeded")
        stored = [*world.broker.streams[INTENTS_STREAM].messages, *world.broker.streams[EVENTS_STREAM].messages]
        (sample,) = [one for one in spans.get_finished_spans() if one.name == "metrics.pass"]
        trace = f"{present(sample.context).trace_id:032x}"
        assert [message.headers["traceparent"].split("-")[1] for message in stored] == [trace] * 4

    virtual(main())
    carried_out = [one for one in spans.get_finished_spans() if one.name == "evictor.carry_out"]
    assert [present(one.attributes).get("outcome") for one in carried_out] == [None, "succeeded"]
    assert len({present(one.context).trace_id for one in carried_out}) == 1
