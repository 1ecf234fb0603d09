"""What a command line would ask of the machine: runnable threads and memory. Knows `stress`, as the tutorial does."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shared.contracts.pod import Pod
from shared.core.pods.manifest import PodRecord
from shared.errors import Refused

STOP_AFTER = "sim.sublet/stop-after-s"
"""Annotation: seconds a pod takes to end when asked to; without it, its whole grace period."""
STRESS = ("stress", "stress-ng")
BASE_BYTES = 16 << 20  # what a small process holds anyway
VM_BYTES = 256 << 20  # stress(1): memory of one --vm worker unless --vm-bytes says otherwise
_SUFFIX = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_COUNTS = {"-c": "cpu", "--cpu": "cpu", "-m": "vm", "--vm": "vm"}


@dataclass(frozen=True, slots=True)
class SimDemand:
    """Runnable threads and bytes held."""

    threads: int = 0
    memory_bytes: int = 0

    def __add__(self, other: "SimDemand") -> "SimDemand":
        return SimDemand(self.threads + other.threads, self.memory_bytes + other.memory_bytes)


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


def demands_of(record: PodRecord) -> dict[str, SimDemand]:
    """The demand of each container of a pod by name.

    Raises:
        Refused: a command or the annotation `STOP_AFTER` cannot be read: such a pod cannot be simulated.
    """
    try:
        stop_after_s(record.pod)
        return {run.name: demand_of(run.command) for run in record.runs}
    except ValueError as error:
        raise Refused(f"pod {record.pod.key}: {error}", reason="malformed") from error


def stop_after_s(pod: Pod) -> float:
    """Seconds from being asked to end until a pod ends by itself; infinite where it waits to be killed.

    Raises:
        ValueError: the annotation is no whole number.
    """
    text = pod.annotations.get(STOP_AFTER)
    if text is None:
        return math.inf
    if not text.isdecimal():
        raise ValueError(f"annotation {STOP_AFTER} {text!r}: want whole seconds")
    return float(text)


def _options(words: Sequence[str]) -> list[tuple[str, str]]:
    """`--cpu 2`, `--cpu=2` and `-c 2` alike; the value of the last word is empty."""
    pairs = []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("-"):
            option, equals, value = word.partition("=")
            pairs.append((option, value if equals else after))
    return pairs


def _number(option: str, text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"stress {option} {text!r}: want a whole number of workers")
    return int(text)


def _amount(text: str) -> int:
    factor = _SUFFIX.get(text[-1:].lower())
    digits = text[:-1] if factor else text
    if not digits.isdecimal():
        raise ValueError(f"stress --vm-bytes {text!r}: want a number with B, K, M or G behind it")
    return int(digits) * (factor or 1)
