"""`keep_cnr_taints` applies one writer's taints to a CNR and leaves those of the others unchanged.

The list has keys in its schema, so server-side apply knows the owner of each entry: an entry that a manager no longer
applies is removed, entries of other managers stay.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.core.api_kind import CNRS
from shared.ports import Objects

TaintRow = Mapping[str, Any]


async def keep_cnr_taints(
    objects: Objects, node: str, rows: Sequence[TaintRow], *, manager: str, mine: Callable[[TaintRow], bool]
) -> bool:
    """Make `rows` exactly the node's taints that are `mine`; return False if they were already, and nothing was
    written.

    An entry that was written under another name, by hand or with an older version, is removed at the version at which
    it was read. A missing CNR is created only for a taint.

    Raises:
        Conflict: it was written in between; try again.
        Unavailable, Refused: the API server is away, or refuses.
    """
    wanted = {_key(row): dict(row) for row in rows}
    standing = await objects.get(CNRS, node)
    # Compared first: the CNR is watched, and a write that changes nothing is still a request a round.
    if {_key(row): dict(row) for row in _taints(standing) if mine(row)} == wanted:
        return False
    spec = {"spec": {"taints": list(wanted.values())}} if wanted else {}
    after = await objects.apply(CNRS, {"metadata": {"name": node}, **spec}, manager=manager)
    # Apply takes out what this manager applied. An entry of ours that another manager owns has to be patched away.
    kept = [row for row in _taints(after) if not mine(row) or _key(row) in wanted]
    if len(kept) != len(_taints(after)):
        meta = {"name": node, "resourceVersion": after["metadata"]["resourceVersion"]}
        await objects.patch(CNRS, {"metadata": meta, "spec": {"taints": kept or None}})
    return True


def _taints(cnr: Mapping[str, Any] | None) -> Sequence[TaintRow]:
    return ((cnr or {}).get("spec") or {}).get("taints") or ()


def _key(row: TaintRow) -> tuple[str, str]:
    """Key and effect of a row: the keys of the list in its schema."""
    return str(row.get("key")), str(row.get("effect"))
