"""Differences between two kinds or two documents of values, as dotted keys. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]
Steps = tuple[str, ...]
"""To a value: a key may have dots of its own, as a label has."""
MOST_DEPTH = 40
"""Schemas and values of a cluster's are others' documents: none is followed further."""


def versions(kind: Document) -> dict[str, Document]:
    """The versions of a kind that are served, by their names."""
    listed = _mapping(kind.get("spec")).get("versions")
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return {str(one.get("name")): one for one in found if one.get("served")}


def stored_versions(kind: Document) -> list[str]:
    """The versions in which objects of a kind may be stored."""
    listed = _mapping(kind.get("status")).get("storedVersions")
    return [str(one) for one in listed] if isinstance(listed, list) else []


def fields_gone(old: Document, new: Document) -> list[str]:
    """The fields that the old kind declares and the new one does not, of the versions that both serve."""
    before, after = versions(old), versions(new)
    return sorted(
        {path for name in before.keys() & after.keys() for path in _gone(_schema(before[name]), _schema(after[name]))}
    )


def refused_keys(values: Document, schema: Document) -> list[str]:
    """The keys of values that a schema does not let pass."""
    return list(_refused(values, schema, schema))


def new_keys(old: Document, new: Document) -> list[str]:
    """The keys of new defaults that the old ones do not have."""
    return [".".join(steps) for steps, _ in _leaves(new) if not _has(old, steps)]


def changed_defaults(old: Document, new: Document, given: Document) -> list[str]:
    """`key: old -> new` for each default that changes and that nobody has set."""
    after = dict(_leaves(new))
    return [
        f"{'.'.join(steps)}: {value} -> {after[steps]}"
        for steps, value in _leaves(old)
        if steps in after and after[steps] != value and not _has(given, steps)
    ]


def _schema(version: Document) -> Document:
    return _mapping(_mapping(version.get("schema")).get("openAPIV3Schema"))


def _gone(old: Document, new: Document, path: str = "", depth: int = 0) -> Iterator[str]:
    # From there on the API server keeps whatever it is given.
    if depth > MOST_DEPTH or new.get("x-kubernetes-preserve-unknown-fields"):
        return
    after = _mapping(new.get("properties"))
    for name, field in _mapping(old.get("properties")).items():
        here = f"{path}.{name}" if path else str(name)
        if name not in after:
            if not isinstance(new.get("additionalProperties"), dict):
                yield here
        else:
            yield from _gone(_mapping(field), _mapping(after[name]), here, depth + 1)
    for part in ("items", "additionalProperties"):
        if isinstance(old.get(part), dict) and isinstance(new.get(part), dict):
            yield from _gone(old[part], new[part], f"{path}[]", depth + 1)


def _refused(values: Document, schema: Document, whole: Document, path: str = "", depth: int = 0) -> Iterator[str]:
    known = _resolved(schema, whole)
    fields = _mapping(known.get("properties"))
    for name, value in values.items():
        here = f"{path}.{name}" if path else str(name)
        if name in fields:
            if isinstance(value, dict) and depth < MOST_DEPTH:
                yield from _refused(value, _mapping(fields[name]), whole, here, depth + 1)
        elif known.get("additionalProperties") is False:
            yield here


def _resolved(schema: Document, whole: Document) -> Document:
    """The schema behind a reference, and without "or null"."""
    for _ in range(MOST_DEPTH):
        choices = [one for one in schema.get("anyOf") or () if isinstance(one, dict) and one.get("type") != "null"]
        if isinstance(schema.get("$ref"), str):
            where: Any = whole
            for step in schema["$ref"].removeprefix("#/").split("/"):
                where = _mapping(where).get(step)
            schema = _mapping(where)
        elif len(choices) == 1:
            schema = choices[0]
        else:
            break
    return schema


def _leaves(values: Document, above: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    for name, value in values.items():
        here = (*above, str(name))
        if isinstance(value, dict) and value and len(here) < MOST_DEPTH:
            yield from _leaves(value, here)
        else:
            yield here, value


def _has(values: Document, steps: Steps) -> bool:
    if not steps:
        return True
    return steps[0] in values and (len(steps) == 1 or _has(_mapping(values[steps[0]]), steps[1:]))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
