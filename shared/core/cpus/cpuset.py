"""Sets of CPUs as bit masks, and their text form in the kernel's list format ("0-3,8")."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_CPUS = 8192  # the largest CONFIG_NR_CPUS of a stock kernel: a longer list is a typing error, not a machine


@dataclass(frozen=True, slots=True)
class CpuSet:
    """An immutable set of CPU ids; bit n of `mask` stands for CPU n."""

    mask: int = 0

    @classmethod
    def of(cls, cpus: Iterable[int]) -> "CpuSet":
        """The set of these ids.

        Raises:
            ValueError: an id is negative or above `MAX_CPUS`.
        """
        mask = 0
        for cpu in cpus:
            if not 0 <= cpu < MAX_CPUS:
                raise ValueError(f"CPU id {cpu}: want 0 to {MAX_CPUS - 1}")
            mask |= 1 << cpu
        return cls(mask)

    @classmethod
    def parse(cls, text: str) -> "CpuSet":
        """Read the kernel's list format; the empty text is the empty set.

        Raises:
            ValueError: not a CPU list; the message names the part.
        """
        return cls(_mask(text))

    def __str__(self) -> str:
        return _listed(self.mask)

    def __iter__(self) -> Iterator[int]:
        rest = self.mask
        while rest:
            low = rest & -rest
            yield low.bit_length() - 1
            rest ^= low

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __bool__(self) -> bool:
        return self.mask != 0

    def __contains__(self, cpu: int) -> bool:
        return bool(self.mask >> cpu & 1)

    def __or__(self, other: "CpuSet") -> "CpuSet":
        return CpuSet(self.mask | other.mask)

    def __and__(self, other: "CpuSet") -> "CpuSet":
        return CpuSet(self.mask & other.mask)

    def __sub__(self, other: "CpuSet") -> "CpuSet":
        return CpuSet(self.mask & ~other.mask)

    def __le__(self, other: "CpuSet") -> bool:
        return self.mask & ~other.mask == 0

    @staticmethod
    def union(sets: "Iterable[CpuSet]") -> "CpuSet":
        """Everything that is in one of the sets."""
        mask = 0
        for one in sets:
            mask |= one.mask
        return CpuSet(mask)

    def first(self, count: int) -> "CpuSet":
        """The `count` lowest ids (all of them where there are fewer)."""
        taken, rest = 0, self.mask
        for _ in range(min(count, len(self))):
            low = rest & -rest
            taken |= low
            rest ^= low
        return CpuSet(taken)


# A node writes and reads the same few lists in every message and file.
@lru_cache(maxsize=1024)
def _mask(text: str) -> int:
    mask = 0
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.strip().partition("-")
        if not first.isascii() or not first.isdigit() or (dash and not (last.isascii() and last.isdigit())):
            raise ValueError(f"CPU list {text!r}: cannot read {part!r}, want '3' or '0-3'")
        low, high = int(first), int(last or first)
        # Bounded before the mask is built: "0-9999999999" would take all memory.
        if high < low or high >= MAX_CPUS:
            raise ValueError(f"CPU list {text!r}: range {part!r} must ascend and end below {MAX_CPUS}")
        mask |= (1 << (high + 1)) - (1 << low)
    return mask


@lru_cache(maxsize=1024)
def _listed(mask: int) -> str:
    parts: list[str] = []
    rest, base = mask, 0
    while rest:
        skip = (rest & -rest).bit_length() - 1
        rest >>= skip
        base += skip
        run = (~rest & (rest + 1)).bit_length() - 1
        parts.append(str(base) if run == 1 else f"{base}-{base + run - 1}")
        rest >>= run
        base += run
    return ",".join(parts)


def canonical_cpu_list(text: str) -> str:
    """The one spelling of a CPU list: ascending, ranges from two CPUs on.

    Raises:
        ValueError: not a CPU list.
    """
    return str(CpuSet.parse(text))
