"""The rules of taking CPUs once more, slowly and over plain lists: what the calculators are compared with.

Written from docs/facts/katalyst-cpu.md#balanced-taking and the three sections behind it, and sharing no code with the
product: a row is (cpu, numa, socket, core, l3), a core named by its lowest CPU. A core, node or socket is free when all
its own CPUs are available, and fits when the need is not smaller than its own size.
"""

import itertools
import math
from collections.abc import Collection, Sequence

Row = tuple[int, int, int, int, int]
Best = tuple[tuple[int, ...], tuple[int, ...], int]
NUMA, SOCKET, CORE, L3 = 1, 2, 3, 4


class TooFew(Exception):
    """Fewer CPUs are available than wanted."""


class Hand:
    """What was taken and what is left, CPU by CPU."""

    def __init__(self, rows: list[Row], available: list[int], count: int) -> None:
        if count > len(available):
            raise TooFew
        self.taken: list[int] = []
        self.rows, self.left, self.count = rows, sorted(available), count

    def take(self, cpus: list[int]) -> None:
        self.taken += cpus
        self.left = [cpu for cpu in self.left if cpu not in cpus]

    @property
    def need(self) -> int:
        return self.count - len(self.taken)

    def take_if_free_and_fits(self, kind: int, unit: int) -> None:
        whole = _cpus(self.rows, kind, unit)
        if all(cpu in self.left for cpu in whole) and self.need >= len(whole):
            self.take(whole)

    def here(self, kind: int, unit: int) -> list[int]:
        return _here(self.rows, self.left, kind, unit)


def balance(rows: list[Row], available: list[int], count: int, *, cores_first: bool, reverse: bool) -> list[int]:
    hand = Hand(rows, available, count)
    numas = sorted({row[NUMA] for row in rows})
    if cores_first:
        for core in _cores_in_turns(hand, numas, reverse):
            hand.take_if_free_and_fits(CORE, core)
    while hand.need > 0:
        for numa in numas:
            here = hand.here(NUMA, numa)
            if here and hand.need > 0:
                hand.take([max(here) if reverse else min(here)])
    return sorted(hand.taken)


def _cores_in_turns(hand: Hand, numas: list[int], reverse: bool) -> list[int]:
    lists = {}
    for numa in numas:
        cores = sorted({row[CORE] for row in hand.rows if row[NUMA] == numa}, reverse=reverse)
        lists[numa] = [core for core in cores if hand.here(CORE, core) == _cpus(hand.rows, CORE, core)]
    longest = max(map(len, lists.values()))
    return [lists[numa][index] for index in range(longest) for numa in numas if len(lists[numa]) > index]


def by_topology(rows: list[Row], available: list[int], count: int, *, align_l3: bool) -> list[int]:
    hand = Hand(rows, available, count)
    for socket in _sorted(rows, hand.left, SOCKET):
        hand.take_if_free_and_fits(SOCKET, socket)
    while align_l3 and hand.need > 0:
        group = hand.here(L3, _l3_for(hand))
        if hand.need < len(group):
            hand.left = group
            break
        hand.take(group)
    for core in _cores_by_socket(hand):
        hand.take_if_free_and_fits(CORE, core)
    for core in _cores_by_socket(hand):
        hand.take(hand.here(CORE, core)[: max(0, hand.need)])
    return sorted(hand.taken)


def _l3_for(hand: Hand) -> int:
    size = {l3: len(hand.here(L3, l3)) for l3 in sorted({row[L3] for row in hand.rows})}
    equal = [l3 for l3 in size if size[l3] == hand.need]
    larger = [l3 for l3 in size if size[l3] > hand.need]
    if equal:
        return min(equal)
    if larger:
        return min(larger, key=lambda l3: (size[l3], l3))
    return min(size, key=lambda l3: (-size[l3], l3))


def _cores_by_socket(hand: Hand) -> list[int]:
    ordered = []
    for socket in _sorted(hand.rows, hand.left, SOCKET):
        inside = {row[CORE] for row in hand.rows if row[SOCKET] == socket}
        ordered += sorted(inside, key=lambda core: (len(hand.here(CORE, core)), core))
    return ordered


def packed(rows: list[Row], available: list[int], count: int) -> list[int]:
    hand = Hand(rows, available, count)
    leading, second = _leading(rows)
    for unit in _sorted(rows, hand.left, leading):
        hand.take_if_free_and_fits(leading, unit)
    for unit in second_units(rows, hand.left):
        hand.take_if_free_and_fits(second, unit)
    for core in packed_cores(rows, hand.left):
        hand.take_if_free_and_fits(CORE, core)
    hand.take(packed_cpus(rows, hand.left)[: max(0, hand.need)])
    return sorted(hand.taken)


def second_units(rows: list[Row], left: list[int]) -> list[int]:
    leading, second = _leading(rows)
    found = []
    for outer in _sorted(rows, left, leading):
        inside = {row[second] for row in rows if row[leading] == outer and row[0] in left}
        found += sorted(inside, key=lambda unit: (len(_here(rows, left, second, unit)), unit))
    return _once(found)


def packed_cores(rows: list[Row], left: list[int]) -> list[int]:
    _, second = _leading(rows)
    found = []
    for unit in second_units(rows, left):
        inside = {row[CORE] for row in rows if row[second] == unit and row[0] in left}
        found += sorted(inside, key=lambda core: (len(_here(rows, left, CORE, core)), core))
    return _once(found)


def packed_cpus(rows: list[Row], left: list[int]) -> list[int]:
    return [cpu for core in packed_cores(rows, left) for cpu in _here(rows, left, CORE, core)]


def distributed(rows: list[Row], available: list[int], count: int, group: int) -> list[int]:
    if count < 1 or count > len(available) or count % group:
        return packed(rows, available, count)
    leading, _ = _leading(rows)
    numas = _sorted(rows, available, NUMA) if leading == NUMA else second_units(rows, available)
    free = {numa: len(_here(rows, available, NUMA, numa)) for numa in numas}
    per_numa = math.ceil(math.ceil(len(rows) / group) / len({row[NUMA] for row in rows}))
    groups = math.ceil(count / group)
    for members in range(math.ceil(groups / per_numa), min(groups, len(numas)) + 1):
        best = _best_combination(numas, free, members, count, group)
        if best is not None:
            return _hand_out(rows, available, best, count, group)
    return packed(rows, available, count)


def _best_combination(numas: list[int], free: dict[int, int], members: int, count: int, group: int) -> Best | None:
    share = count // members // group * group
    best_balance, best = math.inf, None
    for combination in itertools.combinations(numas, members):
        if sum(free[numa] for numa in combination) < count:
            continue
        if sum(free[numa] // group * group for numa in combination) < count:
            continue
        if any(free[numa] < share for numa in combination):
            continue
        left = {numa: free[numa] - (share if numa in combination else 0) for numa in numas}
        rest = count - share * members
        balance, chosen = (_deviation(left.values()), ()) if rest == 0 else _best_subset(left, combination, rest, group)
        if balance < best_balance:
            best_balance, best = balance, (combination, chosen, share)
    return best


def _best_subset(
    left: dict[int, int], combination: Sequence[int], rest: int, group: int
) -> tuple[float, tuple[int, ...]]:
    able = [numa for numa in combination if left[numa] >= group]
    best_balance: float = math.inf
    best: tuple[int, ...] = ()
    for size in range(len(able), 0, -1):
        for subset in itertools.combinations(able, size):
            if sum(left[numa] // group * group for numa in subset) < rest:
                continue
            after = _given_in_turns(left, subset, rest, group)
            if (balance := _deviation(after.values())) < best_balance:
                best_balance, best = balance, subset
    return best_balance, best


def _given_in_turns(left: dict[int, int], subset: Sequence[int], rest: int, group: int) -> dict[int, int]:
    after = dict(left)
    while rest:
        for numa in subset:
            if rest and after[numa] >= group:
                after[numa] -= group
                rest -= group
    return after


def _hand_out(rows: list[Row], available: list[int], best: Best, count: int, group: int) -> list[int]:
    combination, chosen, share = best
    left, taken = sorted(available), []

    def take_from(numa: int, cpus: int) -> None:
        part = packed(rows, _here(rows, left, NUMA, numa), cpus)
        taken.extend(part)
        left[:] = [cpu for cpu in left if cpu not in part]

    for numa in combination:
        take_from(numa, share)
    while len(taken) < count:
        for numa in chosen:
            if len(taken) < count and len(_here(rows, left, NUMA, numa)) >= group:
                take_from(numa, group)
    return sorted(taken)


def _deviation(values: Collection[int]) -> float:
    mean = _thousandths(sum(values) / len(values))
    return _thousandths(math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)))


def _thousandths(value: float) -> float:
    return math.floor(value * 1000 + 0.5) / 1000


def _leading(rows: list[Row]) -> tuple[int, int]:
    numa_first = len({row[SOCKET] for row in rows}) >= len({row[NUMA] for row in rows})
    return (NUMA, SOCKET) if numa_first else (SOCKET, NUMA)


def _cpus(rows: list[Row], kind: int, unit: int) -> list[int]:
    return sorted(row[0] for row in rows if row[kind] == unit)


def _here(rows: list[Row], left: list[int], kind: int, unit: int) -> list[int]:
    return [cpu for cpu in _cpus(rows, kind, unit) if cpu in left]


def _sorted(rows: list[Row], left: list[int], kind: int) -> list[int]:
    units = {row[kind] for row in rows if row[0] in left}
    return sorted(units, key=lambda unit: (len(_here(rows, left, kind, unit)), unit))


def _once(units: list[int]) -> list[int]:
    return list(dict.fromkeys(units))
