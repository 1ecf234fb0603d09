"""The overlap of two selectors: whether one node can satisfy both (docs/facts/katalyst-cluster.md#valid-configs).

Labels are independent of each other, so two selectors overlap unless some label separates them: unless no value of it,
nor its absence, satisfies everything that both ask of it.
"""

from collections.abc import Collection, Sequence

from services.central.core.kcc.selectors import MAX_NUMBER, Requirement, Selector


def overlap(one: Selector, other: Selector, keys: Collection[str]) -> bool:
    """Whether one node may satisfy both; only the labels `keys` can separate them."""
    both = (*one.requirements, *other.requirements)
    return all(satisfiable([part for part in both if part.key == key]) for key in keys)


def satisfiable(parts: Sequence[Requirement]) -> bool:
    """Whether some value of one label, or its absence, satisfies all of these."""
    if all(part.holds(None) for part in parts):
        return True
    listed = [part.values for part in parts if part.operator == "in"]
    # Only listed values can satisfy an "in": so few that each may be tried.
    if listed:
        return any(all(part.holds(value) for part in parts) for value in frozenset.intersection(*listed))
    if any(part.operator == "absent" for part in parts):
        return False
    # Values are free but for bounds; "not in" never bars a number, which may be written with zeros before it. A label
    # cannot begin with a minus.
    lowest = max([0, *(part.bound + 1 for part in parts if part.operator == "gt")])
    highest = min([MAX_NUMBER, *(part.bound - 1 for part in parts if part.operator == "lt")])
    return lowest <= highest
