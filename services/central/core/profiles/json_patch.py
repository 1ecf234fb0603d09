"""A JSON patch (RFC 6902) from one document to another."""

from collections.abc import Iterator, Mapping
from typing import Any

Operation = dict[str, Any]


def json_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Operation]:
    """The operations that make `after` of `before`; none where they are equal.

    Lists of one length are compared element by element, others are replaced: a pod's containers are named by place.
    """
    return list(_changes(before, after, ""))


def _changes(before: Any, after: Any, path: str) -> Iterator[Operation]:
    if before is after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from ({"op": "remove", "path": _below(path, key)} for key in before if key not in after)
        for key, value in after.items():
            if key in before:
                yield from _changes(before[key], value, _below(path, key))
            else:
                yield {"op": "add", "path": _below(path, key), "value": value}
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changes(old, new, f"{path}/{place}")
    # In Python True is 1, in JSON it is not.
    elif before != after or type(before) is not type(after):
        yield {"op": "replace", "path": path, "value": after}


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
