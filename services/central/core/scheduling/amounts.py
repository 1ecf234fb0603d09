"""Amounts by resource name: integers, milli-cores of CPU-like resources and bytes of memory-like ones."""

from collections.abc import Iterable, Mapping

from services.central.core.profiles.pod_admission import requests_together
from shared.contracts.pod import canonical_resource

Amounts = Mapping[str, int]


def one_spelling(amounts: Amounts) -> dict[str, int]:
    """The amounts under today's names; of two spellings of one resource in a map the larger amount counts."""
    found: dict[str, int] = {}
    for spelling, amount in amounts.items():
        name = canonical_resource(spelling)
        found[name] = max(amount, found.get(name, amount))
    return found


def effective_request(init: Iterable[Amounts], running: Iterable[Amounts], overhead: Amounts) -> dict[str, int]:
    """Return what a pod takes of a node: the sum of its containers or the largest init container, plus its overhead."""
    return requests_together(
        [one_spelling(one) for one in init], [one_spelling(one) for one in running], one_spelling(overhead)
    )
