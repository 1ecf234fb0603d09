"""The live screen: the CPU map with how busy each CPU is, and each pool with its pods under it."""

from rich.console import Group, RenderableType
from rich.text import Text

from sublet.views.cpu_map import machine_map
from sublet.views.facts import NodeFacts
from sublet.views.figures import cores, memory
from sublet.views.usage import table, usage_rows


def render(facts: NodeFacts) -> RenderableType:
    """One frame."""
    if facts.sample is None:
        return Text("metrics does not answer: nothing to show; see `sublet status`", "bold red")
    missing = [Text(f"{name} does not answer", "bold red") for name in facts.silent]
    parts: list[RenderableType] = [Text(machine_line(facts), "bold")]
    if drawn := machine_map(facts, usage=True):
        parts += ["", drawn]
    return Group(*parts, "", table("pool / pod", usage_rows(facts, pods=True)), *missing)


def machine_line(facts: NodeFacts) -> str:
    """What the whole machine uses."""
    if facts.sample is None:
        return f"{facts.node}  metrics does not answer: nothing to show; see `sublet status`"
    reading = facts.sample.node_reading
    return (
        f"{facts.node}  CPU {cores(reading.cpu_usage_cores)}  load1 {cores(reading.load1)}  "
        f"memory {memory(reading.memory_available_bytes)} of {memory(reading.memory_total_bytes)} available"
    )
