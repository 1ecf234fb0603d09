"""What a command line would ask of the machine: runnable threads and memory. Knows `stress`, as the tutorial does."""

from collections.abc import Sequence
from dataclasses import dataclass

STRESS = ("stress", "stress-ng")
BASE_BYTES = 16 << 20  # what a small process holds anyway
VM_BYTES = 256 << 20  # stress(1): memory of one --vm worker unless --vm-bytes says otherwise
_SUFFIX = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_COUNTS = {"-c": "cpu", "--cpu": "cpu", "-m": "vm", "--vm": "vm"}


@dataclass(frozen=True, slots=True)
class Demand:
    """Runnable threads and bytes held."""

    threads: int = 0
    memory_bytes: int = 0

    def __add__(self, other: "Demand") -> "Demand":
        return Demand(self.threads + other.threads, self.memory_bytes + other.memory_bytes)


def demand_of(command: Sequence[str]) -> Demand:
    """The demand of a command. `stress`: one thread for each --cpu worker; a --vm worker holds its memory and, with
    --vm-hang, sleeps. Anything else, also no command at all: one busy thread.

    Raises:
        ValueError: a number of `stress` cannot be read.
    """
    if not command or command[0].rpartition("/")[2] not in STRESS:
        return Demand(1, BASE_BYTES)
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
    return Demand(busy, BASE_BYTES + workers["vm"] * vm_bytes)


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
