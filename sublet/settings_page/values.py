"""Values, bounds and units of settings, in words."""

from collections.abc import Mapping
from typing import Any, Literal

from shared.errors import BadConfig

UNITS: Mapping[str, str] = {
    "_s": "seconds",
    "_ms": "milliseconds",
    "_us": "microseconds",
    "_cores_id": "class id",
    "_bytes": "bytes",
    "_bytes_s": "bytes a second",
    "_bps": "bytes a second",
    "_iops": "operations a second",
    "_mb_s": "megabytes a second",
    "_pages_per_s": "pages a second",
    "_per_s": "a second",
    "_per_min": "a minute",
    "_per_minute": "a minute",
    "_cores": "cores",
    "_cpus": "CPUs",
    "_cpu_millis": "milli-cores",
    "_percent": "percent",
    "_percentile": "percent",
    "_ratio": "ratio",
    "_permill": "permill",
    "_min_adj": "percent",
    "wmark_ratio": "percent",
    "shards": "shards",
    "shared_cores": "identity",
    "reclaimed_cores": "identity",
    "dedicated_cores": "identity",
    "system_cores": "identity",
    "_factor": "factor",
    "_rounds": "rounds",
    "_samples": "samples",
    "_series": "series",
    "_steps": "steps",
    "_times": "steps",
    "_times_reclaimed": "steps",
    "_wait_cycle": "steps",
    "_nodes": "nodes",
    "_pods": "pods",
    "_victims": "pods",
    "_per_cpu": "a CPU",
    "_replicas": "servers",
    "_ring_size": "samples",
    "_inodes_free": "inodes",
    "_inodes_used": "inodes",
    "_port": "port",
    "_without_relief": "rounds",
    "eviction_threshold": "ratio",
    "pods_per_cpu": "pods a CPU",
    "pods_per_node": "pods a node",
    "cpu_size": "tasks",
    "stride": "ratio",
    "share": "ratio",
    "margin": "factor",
    "limit": "evictions",
    "burst": "evictions",
    "sched_wait": "tasks a CPU",
    "cpu_pressure": "percent",
    "cpi": "cycles an instruction",
    "_priority": "priority",
}
"""Unit of a number by the end of its key; the longest end that fits counts, and one without `_` is the whole key."""

_SIZES = ((1 << 60, "EiB"), (1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"))
_BOUNDS = (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"), ("exclusiveMaximum", "below"))


def unit_of(key: str, schema: Mapping[str, Any]) -> str:
    """The unit of a number, or of the numbers of a mapping; other values have none.

    Raises:
        BadConfig: it is a number, and no end in `UNITS` fits its key.
    """
    if not any(_is_number(one) for one in _alternatives(schema)):
        return ""
    ends = [end for end in UNITS if key == end or (end.startswith("_") and f"_{key}".endswith(end))]
    if not ends:
        raise BadConfig(
            f"setting {key!r} is a number without a unit; end its name with one (_s, _ratio, _bytes), "
            "or add it to sublet.settings_page.values.UNITS",
            reason="undocumented",
        )
    return UNITS[max(ends, key=len)]


def default_text(value: Any, unit: str) -> str:
    """A default as it would stand in the file, on one line."""
    return f"`{_yaml(value)}`{_size(value, unit)}"


def bounds_text(schema: Mapping[str, Any], definitions: Mapping[str, Any], unit: str) -> str:
    """What a value may be."""
    return " or ".join(_allowed(one, definitions, unit) for one in _alternatives(schema))


def _yaml(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return f"{{{', '.join(f'{key}: {_yaml(item)}' for key, item in value.items())}}}"
        case tuple():
            return f"[{', '.join(map(_yaml, value))}]"
        case int() | float():
            return _number(value)
    return str(value)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _size(value: Any, unit: str) -> str:
    """The same in larger units, where it is a round number of bytes."""
    if unit.startswith("bytes") and isinstance(value, int | float):
        for size, name in _SIZES:
            if value >= size and value % size == 0:
                return f" ({_number(value / size)} {name})"
    return ""


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(schema.get("anyOf", [schema]))


def _is_number(schema: Mapping[str, Any]) -> bool:
    of_each = schema.get("additionalProperties")
    if isinstance(of_each, dict):
        return _is_number(of_each)
    return schema.get("type") in ("integer", "number") and "enum" not in schema


def _allowed(schema: Mapping[str, Any], definitions: Mapping[str, Any], unit: str) -> str:
    if "$ref" in schema:
        return _allowed(definitions[schema["$ref"].rpartition("/")[2]], definitions, unit)
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "null":
            return "`null`"
        case "boolean":
            return "`true`, `false`"
        case "integer" | "number" as kind:
            return _range(schema, kind, unit)
        case "array":
            most = f", at most {schema['maxItems']}" if "maxItems" in schema else ""
            return f"list{most}: {_allowed(schema['items'], definitions, unit)}"
        case "object":
            of_each = schema.get("additionalProperties", True)
            if of_each is False:
                return f"mapping of {', '.join(f'`{key}`' for key in schema['properties'])}"
            plain = of_each is True or of_each.get("type") == "object"
            return "mapping" if plain else f"mapping: {_allowed(of_each, definitions, unit)}"
        case "string":
            return _text(schema)
        case other:
            raise BadConfig(
                f"settings: no words for a value of type {other!r}; add them to sublet.settings_page.values",
                reason="undocumented",
            )


def _range(schema: Mapping[str, Any], kind: Literal["integer", "number"], unit: str) -> str:
    words = ["whole number" if kind == "integer" else "number"]
    words += [f"{word} {_number(schema[key])}{_size(schema[key], unit)}" for key, word in _BOUNDS if key in schema]
    return " ".join(words)


def _text(schema: Mapping[str, Any]) -> str:
    match schema.get("format"):
        case "path":
            return "path"
        case "password":
            return "text, kept secret"
    return f"text like `{schema['pattern']}`" if "pattern" in schema else "text"
