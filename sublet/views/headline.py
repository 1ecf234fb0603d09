"""The node in one line, with which `status` and `top` begin: is it well, what is held back, what runs, since when."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sublet.output import NONE, duration
from sublet.views.conditions import conditions
from sublet.views.facts import NodeFacts

READY = "ready"
PAUSED = "EvictionsPaused"
_REFUSED = "ConfigRefused"
OBSERVING = "observe: nothing is changed"


@dataclass(frozen=True, slots=True)
class Headline:
    """What a person reads first. What nobody tells is None."""

    node: str
    states: tuple[str, ...]
    """`ready` alone, or everything that keeps the node from it."""
    mode: str | None
    version: str | None
    revision: str | None
    up_s: float | None
    """Of the service that has run for the longest time."""
    evicted_last_hour: int | None
    rehearsed_last_hour: int | None
    """Dry runs, in which nobody is evicted."""

    @property
    def ready(self) -> bool:
        """Whether all services are well and nothing is held back or refused."""
        return self.states == (READY,)

    def words(self) -> str:
        """The line."""
        build = f"Sublet {self.version or NONE}" + (f" ({self.revision})" if self.revision else "")
        evicted = NONE if self.evicted_last_hour is None else str(self.evicted_last_hour)
        rehearsed = f", {self.rehearsed_last_hour} rehearsed" if self.rehearsed_last_hour else ""
        up = NONE if self.up_s is None else duration(self.up_s)
        return (
            f"{self.node}  {', '.join(self.states)}  mode {self.mode or NONE}  {build}  up {up}  "
            f"{evicted} evicted in 1h{rehearsed}"
        )


def headline(facts: NodeFacts) -> Headline:
    """The headline of what the services tell."""
    processes = [
        process for service in facts.answers if isinstance(process := facts.answered(service, "process", None), dict)
    ]
    newest: dict[str, Any] = processes[0] if processes else {}
    ups_s = [process["up_s"] for process in processes if isinstance(process.get("up_s"), int | float)]
    return Headline(
        node=facts.node,
        states=tuple(_states(facts)) or (READY,),
        mode=OBSERVING if facts.observes else facts.allocation.mode if facts.allocation else None,
        version=_text(newest.get("version")),
        revision=_text(newest.get("revision")),
        up_s=max(ups_s, default=None),
        evicted_last_hour=_count(facts.answered("evictor", "evicted_last_hour", None)),
        rehearsed_last_hour=_count(facts.answered("evictor", "rehearsed_last_hour", None)),
    )


def _states(facts: NodeFacts) -> Iterator[str]:
    """Everything that keeps the node from being ready; nothing where it is."""
    asked = {name: answer for name, answer in facts.answers.items() if name == "reporter"}
    ready = facts.answered("reporter", "ready", None)
    if len(facts.silent) == len(facts.answers):
        yield "nobody answers"
        return
    if asked and ready is not True:
        yield "not ready" if ready is False else "not known to be ready"
    elif facts.silent:
        yield f"{', '.join(facts.silent)} silent"
    kinds = {kind for kind, _ in conditions(facts)}
    if PAUSED in kinds:
        yield "evictions paused"
    if _REFUSED in kinds:
        yield "configuration refused"


def _count(value: object) -> int | None:
    return value if type(value) is int else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
