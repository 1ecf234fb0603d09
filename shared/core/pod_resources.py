"""The `resources` of a container as amounts in milli-cores and bytes."""

from collections.abc import Mapping
from typing import Any

from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, canonical_resource
from shared.contracts.quantities import parse_millis, parse_units
from shared.core.cpuset import MAX_CPUS
from shared.errors import Refused

MAX_CPU_MILLIS = MAX_CPUS * 1000
MAX_MEMORY_BYTES = 1 << 60

_PLAIN = {"cpu": "cpu", "memory": "memory"}
_RECLAIMED = {RECLAIMED_CPU: "cpu", RECLAIMED_MEMORY: "memory"}


def container_amounts(resources: Mapping[str, Any], qos: str, where: str) -> tuple[dict[str, int], list[str]]:
    """The amount fields of `shared.contracts.pod.Container`, and notes about what is left out.

    As in Kubernetes, a limit without a request is the request too. Reclaimed pods ask for reclaimed resources and
    nobody else does: an amount on the wrong account would be counted by no one.

    Raises:
        Refused: not a quantity, negative, beyond any machine, a request above its limit, or of the wrong class.
    """
    notes: list[str] = []
    requests = _amounts(resources.get("requests"), qos, f"{where}: requests", notes)
    limits = _amounts(resources.get("limits"), qos, f"{where}: limits", notes)
    for kind, limit in limits.items():
        if requests.setdefault(kind, limit) > limit > 0:
            raise Refused(
                f"{where}: {kind} request {requests[kind]} is above its limit {limit}; raise the limit", reason="bounds"
            )
    return {
        "cpu_request_millis": requests.get("cpu", 0),
        "cpu_limit_millis": limits.get("cpu", 0),
        "memory_request_bytes": requests.get("memory", 0),
        "memory_limit_bytes": limits.get("memory", 0),
    }, notes


def _amounts(given: object, qos: str, where: str, notes: list[str]) -> dict[str, int]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Refused(f"{where}: want a mapping of resource to quantity", reason="malformed")
    mine, other = (_RECLAIMED, _PLAIN) if qos == "reclaimed_cores" else (_PLAIN, _RECLAIMED)
    amounts: dict[str, int] = {}
    for spelling, quantity in given.items():
        name = canonical_resource(str(spelling))
        if name in other:
            wanted = ", ".join(sorted(mine))
            raise Refused(f"{where}: {spelling} is not for {qos} pods; they ask for {wanted}", reason="wrong_class")
        if name not in mine:
            notes.append(f"{where}: {spelling} is left out: this host does not manage it")
            continue
        kind = mine[name]
        amount = _amount(quantity, kind, name, f"{where}: {spelling}")
        if amounts.setdefault(kind, amount) != amount:
            raise Refused(f"{where}: {spelling} stands twice with different amounts; keep one", reason="malformed")
    return amounts


def _amount(quantity: object, kind: str, name: str, where: str) -> int:
    bound = MAX_CPU_MILLIS if kind == "cpu" else MAX_MEMORY_BYTES
    try:
        if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
            raise ValueError(f"quantity {quantity!r}: want a number or text such as 2, 500m or 1Gi")
        amount = parse_millis(quantity) if name == "cpu" else parse_units(quantity)
    except ValueError as error:
        raise Refused(f"{where}: {error}", reason="quantity") from error
    if not 0 <= amount <= bound:
        raise Refused(f"{where}: {quantity!r} is out of bounds: 0 to {bound} {'m' if kind == 'cpu' else 'bytes'}",
                      reason="bounds")  # fmt: skip
    return amount
