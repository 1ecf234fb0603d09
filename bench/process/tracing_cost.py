"""What tracing costs a step that is traced: CPU time of a span, a note in it and the headers of a message; off and on.

    python -m bench.process.tracing_cost

On means spans that are kept and dropped: what sends them to a collector does so in a thread of its own.
"""

import asyncio
import statistics
import time

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from bench.rigs.report import Row, machine, progress
from shared.telemetry import note, span, trace_headers, use_tracer

ROUNDS, STEPS = 20, 2000
PARENT = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"


class _Dropped(SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        """Take the span, and forget it."""


def step_us() -> float:
    """CPU microseconds of a step, as services trace theirs: median of the rounds."""
    found = []
    for _ in range(ROUNDS):
        before = time.process_time_ns()
        for number in range(STEPS):
            with span("bench.step", {"seq": number}, parent=PARENT):
                note({"pods": number})
                trace_headers()
        found.append((time.process_time_ns() - before) / STEPS / 1000)
    return statistics.median(found)


async def measure() -> list[Row]:
    """Off, as everything is by default; then on."""
    progress("tracing off and on")
    off = step_us()
    provider = TracerProvider()
    provider.add_span_processor(_Dropped())
    use_tracer(provider.get_tracer("bench"))
    try:
        on = step_us()
    finally:
        use_tracer(None)
        provider.shutdown()
    return [
        Row("CPU time of a traced step, tracing off", f"{off:.2f} us", ROUNDS, ""),
        Row("CPU time of a traced step, tracing on", f"{on:.2f} us", ROUNDS, ""),
    ]


if __name__ == "__main__":
    print(machine())
    for row in asyncio.run(measure()):
        print(f"{row.what}: {row.figure} (N={row.n})")
