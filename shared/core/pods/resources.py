"""The `resources` of a container as amounts in milli-cores and bytes.

Reclaimed resources have a name in each dialect, and are one account: Katalyst's `reclaimed_millicpu` and
`reclaimed_memory` (docs/facts/katalyst-cluster.md#two-spellings), Koordinator's `batch-cpu` (also in milli-cores) and
`batch-memory` (docs/facts/koordinator.md#batch-resources).
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from shared.contracts.kube.quantities import is_fraction, parse_millis, parse_units
from shared.contracts.pod import (
    BATCH_CPU,
    BATCH_MEMORY,
    FIRST_BATCH_CPU,
    FIRST_BATCH_MEMORY,
    MID_CPU,
    MID_MEMORY,
    RECLAIMED_CPU,
    RECLAIMED_MEMORY,
    KubeQos,
    canonical_resource,
)
from shared.core.cgroups.kube_qos import kube_qos
from shared.core.cpus.cpuset import MAX_CPUS
from shared.core.text.document import mapping
from shared.errors import Refused

MAX_CPU_MILLIS = MAX_CPUS * 1000
MAX_MEMORY_BYTES = 1 << 60

_PLAIN = {"cpu": "cpu", "memory": "memory"}
_RECLAIMED = {RECLAIMED_CPU: "cpu", RECLAIMED_MEMORY: "memory"}
_MID = {MID_CPU: "cpu", MID_MEMORY: "memory"}
_BATCH = {
    BATCH_CPU: RECLAIMED_CPU,
    BATCH_MEMORY: RECLAIMED_MEMORY,
    FIRST_BATCH_CPU: RECLAIMED_CPU,
    FIRST_BATCH_MEMORY: RECLAIMED_MEMORY,
}
_ASK_FOR_RECLAIMED = f"{RECLAIMED_CPU}, {RECLAIMED_MEMORY}, or {BATCH_CPU}, {BATCH_MEMORY}"
_ASK_FOR_PLAIN = "cpu, memory; only reclaimed_cores (Koordinator's BE) pods get reclaimed resources"


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


def known_amounts(resources: Mapping[str, Any], qos: str, *, is_mid: bool = False) -> dict[str, int]:
    """As `container_amounts`, of a pod that runs already: what cannot be counted is left out instead of refused.

    Pods of Koordinator's class mid ask for mid resources, whatever their QoS class; where they ask for plain ones too,
    the larger amount counts.
    """
    mine = (_RECLAIMED if qos == "reclaimed_cores" else _PLAIN) | (_MID if is_mid else {})
    found: dict[str, dict[str, int]] = {}
    for part in ("requests", "limits"):
        given = resources.get(part)
        found[part] = {}
        for spelling, quantity in (given if isinstance(given, dict) else {}).items():
            name = _BATCH.get(str(spelling)) or canonical_resource(str(spelling))
            if name in mine:
                with suppress(Refused):
                    amount = _amount(quantity, mine[name], name, spelling)
                    found[part][mine[name]] = max(amount, found[part].get(mine[name], 0))
    return {
        f"{kind}_{part[:-1]}_{'millis' if kind == 'cpu' else 'bytes'}": (
            found[part].get(kind, found["limits"].get(kind, 0) if part == "requests" else 0)
        )
        for kind in ("cpu", "memory")
        for part in ("requests", "limits")
    }


def names_reclaimed(resources: Mapping[str, Any]) -> bool:
    """Whether a container's requests name a reclaimed resource, in either dialect, whatever the amount.

    The API server makes requests of the limits of such resources, and lets nobody change them afterwards.
    """
    given = resources.get("requests")
    names = map(str, given if isinstance(given, dict) else ())
    return any((_BATCH.get(name) or canonical_resource(name)) in _RECLAIMED for name in names)


def kube_qos_of(containers: Iterable[Mapping[str, Any]], where: str) -> KubeQos:
    """The Kubernetes QoS class of a pod, from the `resources` of its containers.

    Raises:
        Refused: an amount of cpu or memory is no quantity, negative, or beyond any machine.
    """
    return kube_qos(
        (_plain(resources.get("requests"), f"{where}: requests"), _plain(resources.get("limits"), f"{where}: limits"))
        for resources in containers
    )


def _plain(given: object, where: str) -> dict[str, int]:
    """The amounts of cpu and memory; what else is asked for has no say in the Kubernetes QoS class."""
    amounts = mapping(given, where)
    return {name: _amount(amounts[name], name, name, f"{where}: {name}") for name in _PLAIN if name in amounts}


def _amounts(given: object, qos: str, where: str, notes: list[str]) -> dict[str, int]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Refused(f"{where}: want a mapping of resource to quantity", reason="malformed")
    mine, other = (_RECLAIMED, _PLAIN) if qos == "reclaimed_cores" else (_PLAIN, _RECLAIMED)
    amounts: dict[str, int] = {}
    for spelling, quantity in given.items():
        name = _BATCH.get(str(spelling)) or canonical_resource(str(spelling))
        # 0 of the other kind asks for nothing: it is no contradiction.
        if name in other and _amount(quantity, other[name], name, f"{where}: {spelling}") == 0:
            continue
        if name in other:
            wanted = _ASK_FOR_RECLAIMED if mine is _RECLAIMED else _ASK_FOR_PLAIN
            raise Refused(f"{where}: {spelling} is not for {qos} pods; they ask for {wanted}", reason="wrong_class")
        if name not in mine:
            notes.append(f"{where}: {spelling} is left out: this host does not manage it")
            continue
        kind = mine[name]
        amount = _amount(quantity, kind, name, f"{where}: {spelling}")
        if kind == "memory" and is_fraction(quantity):
            notes.append(f"{where}: {spelling} {quantity}: no whole bytes, counted as {amount}; for mebibytes write Mi")
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
