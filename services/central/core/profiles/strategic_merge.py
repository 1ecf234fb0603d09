"""Strategic merge of a patch into a Pod, as the API server does it (docs/facts/koordinator-profiles.md#patch).

Maps are merged key by key, and null removes a key. A list takes the place of the other one, but for those lists whose
elements Kubernetes knows by a key: there elements of the same key are merged, and new ones stand in front.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from shared.errors import Refused

Document = dict[str, Any]
T = TypeVar("T")
_Element = tuple[str | int, int]
"""Key of an element of a list, and how many of the same key stand before it."""

_CONTAINERS = ("spec.containers", "spec.initContainers", "spec.ephemeralContainers")
_MERGE_KEYS = {
    "metadata.ownerReferences": "uid",
    "spec.hostAliases": "ip",
    "spec.imagePullSecrets": "name",
    "spec.resourceClaims": "name",
    "spec.schedulingGates": "name",
    "spec.topologySpreadConstraints": "topologyKey",
    "spec.volumes": "name",
    **dict.fromkeys(_CONTAINERS, "name"),
    **{
        f"{containers}.{field}": key
        for containers in _CONTAINERS
        for field, key in (("env", "name"), ("ports", "containerPort"), ("volumeDevices", "devicePath"),
                           ("volumeMounts", "mountPath"))
    },
}  # fmt: skip
_MERGED_WORDS = frozenset({"metadata.finalizers"})
_PATCH, _RETAIN_KEYS, _REMOVE_WORDS = "$patch", "$retainKeys", "$deleteFromPrimitiveList/"


def merge_pod(pod: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    """Return the pod merged with the patch; neither is changed.

    Raises:
        Refused: `patch`, with the path: an unknown directive, or an element without its key.
    """
    return _merged(pod, patch, "")


def _merged(original: Mapping[str, Any], patch: Mapping[str, Any], place: str) -> Document:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return _without_directives(dict(patch))
    if directive == "delete":
        return {}
    if directive is not None:
        raise _refused(place, f"{_PATCH}: {directive!r}: want replace or delete")
    found = dict(original)
    if _RETAIN_KEYS in patch:
        retained = _list(patch[_RETAIN_KEYS], place)
        found = {key: value for key, value in found.items() if key in retained}
    for key, value in patch.items():
        _merge_field(found, key, value, f"{place}.{key}" if place else key)
    return found


def _merge_field(found: Document, key: str, value: Any, place: str) -> None:
    """Write one field of a patch into the map that it belongs to."""
    if key.startswith(_REMOVE_WORDS):
        name, removed = key.removeprefix(_REMOVE_WORDS), _list(value, place)
        if name in found:
            found[name] = [word for word in _list(found[name], place) if word not in removed]
    elif key.startswith("$"):
        return  # of the map itself, or an order that means nothing to a pod
    elif value is None:
        found.pop(key, None)
    elif isinstance(value, dict) and isinstance(found.get(key), dict):
        found[key] = _merged(found[key], value, place)
    elif isinstance(value, list) and isinstance(found.get(key), list):
        found[key] = _merged_list(found[key], value, place)
    else:
        found[key] = _without_directives(value)


def _merged_list(original: Sequence[Any], patch: Sequence[Any], place: str) -> list[Any]:
    if place in _MERGED_WORDS:
        if not all(isinstance(word, str) for word in (*original, *patch)):
            raise _refused(place, "want a list of texts")
        return list(dict.fromkeys([*original, *patch]))
    if place not in _MERGE_KEYS:
        return _without_directives(list(patch))
    name = _MERGE_KEYS[place]
    there = _numbered(original, name, place)
    wanted: dict[_Element, Any] = {}
    for item in patch:
        directive = item.get(_PATCH) if isinstance(item, dict) else None
        if directive == "replace":
            return _without_directives([one for one in patch if not (isinstance(one, dict) and _PATCH in one)])
        key = _key(item, name, place)
        element = (key, 0)
        if directive == "delete":
            there = {other: kept for other, kept in there.items() if other[0] != key}
        elif directive is not None:
            raise _refused(place, f"{_PATCH}: {directive!r}: want replace or delete")
        else:
            before = wanted.get(element, there.get(element))
            wanted[element] = _without_directives(item) if before is None else _merged(before, item, place)
    return _in_order(there, wanted)


def _numbered(original: Sequence[Any], name: str, place: str) -> dict[_Element, Any]:
    """Elements by key and how many of that key stand before: ports of two protocols share their number, for one."""
    found: dict[_Element, Any] = {}
    for item in original:
        key = _key(item, name, place)
        found[key, sum(other == key for other, _ in found)] = item
    return found


def _in_order(there: Mapping[_Element, Any], wanted: Mapping[_Element, Any]) -> list[Any]:
    """Merge two lists in their own orders; if the order of two elements is undetermined, the patch's comes first."""
    places = {key: place for place, key in enumerate(there)}
    untouched = [key for key in there if key not in wanted]
    found: list[Any] = []
    for key in wanted:
        while untouched and key in places and places[untouched[0]] < places[key]:
            found.append(there[untouched.pop(0)])
        found.append(wanted[key])
    return found + [there[key] for key in untouched]


def _key(item: Any, name: str, place: str) -> str | int:
    key = item.get(name) if isinstance(item, dict) else None
    if not isinstance(key, str | int):
        raise _refused(place, f"an element has no {name}; every element of this list must name its own")
    return key


def _list(given: Any, place: str) -> list[Any]:
    if not isinstance(given, list):
        raise _refused(place, f"want a list, got {type(given).__name__}")
    return given


def _without_directives(value: T) -> T:
    """Return the value for an empty place: without directives, and without keys that are to be removed."""
    return cast("T", _plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        said = {key: item for key, item in value.items() if item is not None and not key.startswith("$")}
        return {key: _plain(item) for key, item in said.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _refused(place: str, why: str) -> Refused:
    return Refused(f"patch, {place or 'the whole'}: {why}", reason="patch")
