"""A JSON patch (RFC 6902) from one document to another."""

from collections.abc import Mapping
from typing import Any

Operation = dict[str, Any]


def json_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Operation]:
    """Return the operations that turn `before` into `after`; empty if they are equal.

    Lists of equal length are compared element by element, others are replaced, because a pod's containers are addressed
    by index.
    """
    found: list[Operation] = []
    _compare(before, after, "", found)
    return found


def _compare(before: Any, after: Any, path: str, found: list[Operation]) -> None:
    """Append the operations below a path. Shared objects, which are most of a pod, are not compared."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        found += [{"op": "remove", "path": _below(path, key)} for key in before if key not in after]
        for key, value in after.items():
            if key not in before:
                found.append({"op": "add", "path": _below(path, key), "value": value})
            elif before[key] is not value:
                _compare(before[key], value, _below(path, key), found)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            if old is not new:
                _compare(old, new, f"{path}/{place}", found)
    # In Python True is 1, in JSON it is not.
    elif before != after or type(before) is not type(after):
        found.append({"op": "replace", "path": path, "value": after})


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
