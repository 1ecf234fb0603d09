"""Computes a pod's load: from its annotations, otherwise from its command line, of which `stress` is known."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.contracts.pod import Pod
from shared.core.pods.manifest import PodRecord
from shared.errors import Refused
from sublet.load.curve import LoadCurve, read_curve

STOP_AFTER = "sim.sublet/stop-after-s"
"""Annotation: seconds a pod takes to end when asked to; without it, its whole grace period."""
LOAD = "sim.sublet/load"
"""Annotation: cores that a pod wants, an amount or a curve, evenly over its containers; without it, its command's."""
MEMORY_LOAD = "sim.sublet/memory-load"
"""Annotation: bytes that a pod holds, in the same form."""
MOST_CORES, MOST_BYTES = 512, 1 << 50  # each core is a process with its files in the generated /proc
STRESS = ("stress", "stress-ng")
BASE_BYTES = 16 << 20  # what a small process holds anyway
VM_BYTES = 256 << 20  # stress(1): memory of one --vm worker unless --vm-bytes says otherwise
_SHOWN, _MOST_DIGITS = 80, 16
_SUFFIX = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_COUNTS = {"-c": "cpu", "--cpu": "cpu", "-m": "vm", "--vm": "vm"}


@dataclass(frozen=True, slots=True)
class SimDemand:
    """Runnable threads, as an average over a moment, and bytes held."""

    threads: float = 0
    memory_bytes: int = 0

    def __add__(self, other: "SimDemand") -> "SimDemand":
        return SimDemand(self.threads + other.threads, self.memory_bytes + other.memory_bytes)


@dataclass(frozen=True, slots=True)
class SimLoad:
    """What a container asks for over time."""

    cores: LoadCurve
    memory: LoadCurve

    @classmethod
    def of_command(cls, command: Sequence[str]) -> "SimLoad":
        """The load of a command, which is the same all the time.

        Raises:
            ValueError: as `demand_of`.
        """
        demand = demand_of(command)
        return cls(LoadCurve.steady(demand.threads), LoadCurve.steady(demand.memory_bytes))

    @property
    def words(self) -> str:
        """The load for people: `CPU sine:0.5..3:60s cores, memory 512 MiB`."""
        return f"CPU {self.cores.words(1)} cores, memory {self.memory.words(1 << 20)} MiB"

    def at(self, since_s: float) -> SimDemand:
        """The demand so many seconds after the start."""
        return SimDemand(self.cores.at(since_s), int(self.memory.at(since_s)))


def demand_of(command: Sequence[str]) -> SimDemand:
    """The demand of a command. `stress`: one thread for each --cpu worker; a --vm worker holds its memory and, with
    --vm-hang, sleeps. Anything else, also no command at all: one busy thread.

    Raises:
        ValueError: a number of `stress` cannot be read.
    """
    if not command or command[0].rpartition("/")[2] not in STRESS:
        return SimDemand(1, BASE_BYTES)
    workers = {"cpu": 0, "vm": 0}
    vm_bytes, hangs = VM_BYTES, False
    for option, value in _options(command[1:]):
        if option in _COUNTS:
            workers[_COUNTS[option]] = _number(option, value)
        elif option == "--vm-bytes":
            vm_bytes = _amount(value)
        elif option == "--vm-hang":
            hangs = True
    busy = workers["cpu"] + (0 if hangs else workers["vm"])
    return SimDemand(busy, BASE_BYTES + workers["vm"] * vm_bytes)


def loads_of(record: PodRecord) -> dict[str, SimLoad]:
    """The load of each container of a pod by name.

    Raises:
        Refused: a command, a load or the annotation `STOP_AFTER` cannot be read: such a pod cannot be simulated.
    """
    pod, parts = record.pod, max(1, len(record.runs))
    try:
        stop_after_s(pod)
        cores = _annotated(pod, LOAD, read_cores, parts)
        memory = _annotated(pod, MEMORY_LOAD, read_memory, parts)
        commands = {run.name: SimLoad.of_command(run.command) for run in record.runs}
    except ValueError as error:
        raise Refused(f"pod {pod.key}: {error}", reason="malformed") from error
    return {name: SimLoad(cores or own.cores, memory or own.memory) for name, own in commands.items()}


def read_cores(text: str) -> LoadCurve:
    """A curve of CPU cores: `2.5`, `500m`, `sine:0.5..3:60s`.

    Raises:
        ValueError: as `read_curve`.
    """
    return read_curve(text, lambda number: parse_millis(number) / 1000, MOST_CORES)


def read_memory(text: str) -> LoadCurve:
    """A curve of bytes: `512Mi`, `ramp:64Mi..2Gi:60s`.

    Raises:
        ValueError: as `read_curve`.
    """
    return read_curve(text, parse_units, MOST_BYTES)


def _annotated(pod: Pod, key: str, read: Callable[[str], LoadCurve], parts: int) -> LoadCurve | None:
    """The part of one container in the load that a pod's annotation says; None where it says none.

    Raises:
        ValueError: it cannot be read.
    """
    text = pod.annotations.get(key)
    if text is None:
        return None
    try:
        whole = read(text)
    except ValueError as error:
        raise ValueError(f"annotation {key} {error}") from None
    return replace(whole, low=whole.low / parts, high=whole.high / parts)


def stop_after_s(pod: Pod) -> float:
    """Seconds from being asked to end until a pod ends by itself; infinite where it waits to be killed.

    Raises:
        ValueError: the annotation is no whole number.
    """
    text = pod.annotations.get(STOP_AFTER)
    if text is None:
        return math.inf
    seconds = _whole(text)
    if seconds is None:
        raise ValueError(f"annotation {STOP_AFTER} {text[:_SHOWN]!r}: want whole seconds")
    return float(seconds)


def _options(words: Sequence[str]) -> list[tuple[str, str]]:
    """`--cpu 2`, `--cpu=2` and `-c 2` alike; the value of the last word is empty."""
    pairs = []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("-"):
            option, equals, value = word.partition("=")
            pairs.append((option, value if equals else after))
    return pairs


def _number(option: str, text: str) -> int:
    workers = _whole(text)
    if workers is None or workers > MOST_CORES:
        raise ValueError(f"stress {option} {text[:_SHOWN]!r}: want a whole number of workers, at most {MOST_CORES}")
    return workers


def _amount(text: str) -> int:
    factor = _SUFFIX.get(text[-1:].lower())
    units = _whole(text[:-1] if factor else text)
    if units is None or units * (factor or 1) > MOST_BYTES:
        raise ValueError(
            f"stress --vm-bytes {text[:_SHOWN]!r}: want a number, with B, K, M or G behind it, at most {MOST_BYTES}"
        )
    return units * (factor or 1)


def _whole(text: str) -> int | None:
    """A whole number of few digits; None where it is none."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal() else None
