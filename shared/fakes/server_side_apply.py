"""Server-side apply as Sublet relies on it: fields by manager, in mappings, and in lists whose schema has keys.

What a manager applied before and does not apply now goes, unless another manager has applied it as well.
"""

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]
Path = tuple[Any, ...]

LIST_KEYS: dict[Path, tuple[str, ...]] = {
    ("spec", "taints"): ("key", "effect"),
    ("spec", "nodeResourceProperties"): ("propertyName",),
    ("status", "conditions"): ("type",),
}
"""Lists of deploy/k8s/crds with their `x-kubernetes-list-map-keys`; any other list is one value."""
PARTS = ("spec", "status")


class Appliers:
    """Who has applied which fields of one object."""

    def __init__(self) -> None:
        self._fields: dict[str, set[Path]] = {}

    def apply(self, standing: Mapping[str, Any], said: Mapping[str, Any], manager: str) -> Document:
        """The object after a manager has applied a document to it, by force."""
        parts = [part for part in PARTS if part in said]
        now = {path for part in parts for path in _leaves(_keyed(said[part], (part,)), (part,))}
        others = set[Path]().union(*(fields for name, fields in self._fields.items() if name != manager))
        result: Document = copied(dict(standing))
        tree = {part: _keyed(result[part], (part,)) for part in PARTS if part in result}
        for path in self._fields.get(manager, set()) - now - others:
            _drop(tree, path)
        for part in parts:
            tree[part] = _joined(tree.get(part), _keyed(said[part], (part,)))
        self._fields[manager] = now
        for part in PARTS:
            result.pop(part, None)
        if owners := (said.get("metadata") or {}).get("ownerReferences"):
            result["metadata"] = {**result["metadata"], "ownerReferences": copied(owners)}
        return result | {part: _listed(value, (part,)) for part, value in tree.items() if value not in ({}, None)}


def copied(value: Any) -> Any:
    """Copy a JSON value; many times faster than `copy.deepcopy`, which looks for cycles."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def _keyed(value: Any, path: Path) -> Any:
    """A tree in which lists with keys are mappings by those."""
    if path in LIST_KEYS:
        names = LIST_KEYS[path]
        return {tuple(item[name] for name in names): dict(item) for item in value}
    if isinstance(value, Mapping):
        return {key: _keyed(item, (*path, key)) for key, item in value.items()}
    return copied(value)


def _listed(value: Any, path: Path) -> Any:
    if path in LIST_KEYS:
        return list(value.values())
    return {key: _listed(item, (*path, key)) for key, item in value.items()} if isinstance(value, dict) else value


def _leaves(value: Any, path: Path) -> set[Path]:
    if isinstance(value, dict) and value:
        return {leaf for key, item in value.items() for leaf in _leaves(item, (*path, key))}
    return {path}


def _drop(tree: Document, path: Path) -> None:
    """Take a field out, and what it leaves empty."""
    head, *rest = path
    if head not in tree:
        return
    if rest and isinstance(tree[head], dict):
        _drop(tree[head], tuple(rest))
        if tree[head]:
            return
    del tree[head]


def _joined(base: Any, over: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return base | {key: _joined(base.get(key), item) for key, item in over.items()}
