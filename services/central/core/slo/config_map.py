"""The data of a ConfigMap `slo-controller-config`: each key read and bounded, and everything that is wrong named.

A key that cannot be used keeps its last good content. A strategy for some nodes that cannot be used is left out, so
that the cluster's holds there.

Facts: docs/facts/koordinator-slo-config.md#keys.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from pydantic import BaseModel, ValidationError

from services.central.core.kcc.selector_overlap import overlap
from services.central.core.kcc.selectors import Selector
from services.central.core.slo.keys import CLUSTER, SHAPES, SLO_KEYS, KeyShape, SloKey, Strategy
from services.central.core.slo.label_selector import read_label_selector
from services.central.core.slo.overlay import overlay
from shared.core.pydantic_words import field_faults
from shared.core.text.did_you_mean import did_you_mean
from shared.core.text.json_text import read_json_object
from shared.errors import Refused, SettingProblem

MAX_KEY_BYTES = 1 << 20
"""Limit of a whole ConfigMap."""
MAX_NODE_STRATEGIES = 100
"""Of one key: each is compared with each."""
MAX_NAMED = 20
"""Most problems and unknown fields that are named; the rest is counted."""
SHOWN_CHARACTERS = 80
SAID_CHARACTERS = 300
"""Most characters of one problem, besides the path that leads to it."""
_PROFILE = ("name", "nodeSelector")


@dataclass(frozen=True, slots=True)
class SloConfigMap:
    """The ConfigMap as the API server has it."""

    uid: str
    data: Mapping[str, str]


def config_map_of(document: Mapping[str, Any]) -> SloConfigMap:
    """The ConfigMap of its document; what is no text is not there."""
    data = document.get("data")
    texts = {key: text for key, text in data.items() if isinstance(text, str)} if isinstance(data, Mapping) else {}
    meta = document.get("metadata")
    return SloConfigMap(str(meta.get("uid") or "") if isinstance(meta, Mapping) else "", texts)


@dataclass(frozen=True, slots=True)
class NodeStrategy:
    """What a key says about the nodes of a selector."""

    name: str
    selector: Selector
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class KeyConfig:
    """One parsed key: what it says about all nodes, and then about some, in order."""

    cluster: Strategy = field(default_factory=dict)
    nodes: tuple[NodeStrategy, ...] = ()


SloConfig = Mapping[SloKey, KeyConfig]


@dataclass(frozen=True, slots=True)
class ReadSloConfig:
    """What is valid now, and what was wrong with the input; `unknown` names fields that Sublet does not read."""

    config: SloConfig
    problems: tuple[SettingProblem, ...] = ()
    unknown: tuple[str, ...] = ()
    unread: frozenset[SloKey] = frozenset()
    """Keys that cannot be used, without a last valid content."""


def read_slo_config(
    data: Mapping[str, str], last: SloConfig | None = None, *, most_problems: int | None = MAX_NAMED
) -> ReadSloConfig:
    """Parse the configuration; for an unusable key, take the content of `last`.

    At most so many problems are named, and the number of the others; with None all of them.
    """
    config: dict[SloKey, KeyConfig] = {}
    unread: set[SloKey] = set()
    reader = _Reader(most_problems)
    for key in SLO_KEYS:
        text = data.get(key)
        if text is None or not text.strip():
            continue
        read = reader.key(key, text)
        if read is not None:
            config[key] = read
        elif last is not None and key in last:
            config[key] = last[key]
        else:
            unread.add(key)
    unknown = [key for key in data if key not in SLO_KEYS]
    reader.unknown += [f"{_shown(key)}: no such key; {did_you_mean(key, SLO_KEYS)}" for key in unknown[:MAX_NAMED]]
    problems = reader.problems[:most_problems]
    if (more := len(reader.problems) - len(problems)) > 0:
        problems.append(SettingProblem((), f"and {more} more"))
    return ReadSloConfig(config, tuple(problems), tuple(_first(reader.unknown)), frozenset(unread))


class _Reader:
    """Reads keys and collects what is wrong."""

    def __init__(self, most_problems: int | None) -> None:
        self._most_problems = most_problems
        self.problems: list[SettingProblem] = []
        self.unknown: list[str] = []

    def key(self, key: SloKey, text: str) -> KeyConfig | None:
        """Parse one key; None if it is unusable."""
        shape = SHAPES[key]
        try:
            document = read_json_object(text, what=key, max_bytes=MAX_KEY_BYTES)
        except Refused as refusal:
            said = str(refusal).removeprefix(key)
            self._problem((key,), f"{said}; the last good one holds")
            return None
        nodes = document.pop(shape.nodes, None)
        cluster = document if shape.inline else document.pop(CLUSTER, None)
        path = (key,) if shape.inline else (key, CLUSTER)
        if not shape.inline:
            self.unknown += [f"{key}.{_shown(name)}: no such field" for name in document]
        strategy = self._strategy(shape, path, {} if cluster is None else cluster, shape.built_in)
        if strategy is None:
            return None
        whole = overlay(shape.built_in, strategy)
        return KeyConfig(strategy, tuple(self._nodes(shape, (key, shape.nodes), nodes, whole)))

    def _nodes(self, shape: KeyShape, path: tuple[str, ...], given: Any, below: Strategy) -> list[NodeStrategy]:
        if given is None:
            return []
        if not isinstance(given, list) or len(given) > MAX_NODE_STRATEGIES:
            self._problem(path, f": want a list of at most {MAX_NODE_STRATEGIES}; the cluster's strategy holds")
            return []
        read = [self._node(shape, (*path, str(index)), entry, below) for index, entry in enumerate(given)]
        found = [node for node in read if node is not None]
        self._tell_apart(path, found)
        return found

    def _node(self, shape: KeyShape, path: tuple[str, ...], entry: Any, below: Strategy) -> NodeStrategy | None:
        if not isinstance(entry, dict):
            self._problem(path, ": want a mapping of keys to values; the cluster's strategy holds")
            return None
        name, selector = entry.get("name"), entry.get("nodeSelector")
        own = {field_name: value for field_name, value in entry.items() if field_name not in _PROFILE}
        if shape.inline and "applications" in shape.built_in:
            # A node strategy's list replaces the cluster's list, even if it is not given.
            own["applications"] = [] if own.get("applications") is None else own["applications"]
        if not isinstance(name, str) or not 0 < len(name) <= SHOWN_CHARACTERS:
            self._problem((*path, "name"), f": want a name of at most {SHOWN_CHARACTERS} characters; give it one")
            name = path[-1]
        try:
            read = read_label_selector(selector)
        except Refused as refusal:
            self._problem((*path, "nodeSelector"), f": {refusal}; the cluster's strategy holds")
            return None
        if not read.requirements:
            self._problem((*path, "nodeSelector"), ": takes every node; say it under the cluster's strategy instead")
            return None
        strategy = self._strategy(shape, path, own, below)
        return None if strategy is None else NodeStrategy(name, read, strategy)

    def _tell_apart(self, path: tuple[str, ...], nodes: list[NodeStrategy]) -> None:
        """Say which strategies one node could have two of; the first one holds there."""
        for one, other in combinations(nodes, 2):
            if one.name == other.name:
                self._problem(path, f": two are called {_shown(one.name)}; give each a name of its own")
            if overlap(one.selector, other.selector, one.selector.keys | other.selector.keys):
                said = f"{_shown(one.name)} and {_shown(other.name)} can take the same node"
                self._problem(path, f": {said}, where the first holds; make their selectors exclude each other")

    def _strategy(self, shape: KeyShape, path: tuple[str, ...], given: Any, below: Strategy) -> Strategy | None:
        """Return the strategy as given, if it is usable by itself and on top of what is below it."""
        checked = _said(given)
        try:
            model = shape.model.model_validate(checked)
            shape.model.model_validate(overlay(below, checked))
        except ValidationError as error:
            for fault in field_faults(error)[: self._most_problems]:
                value = "" if isinstance(fault.given, dict | list) else f" = {_shown(fault.given)}"
                self._problem((*path, *fault.path), f"{value}: {fault.wish}")
            return None
        self.unknown += [f"{'.'.join(path)}.{_shown(name)}: no such field" for name in _unknown(model)]
        strategy: Strategy = checked
        return strategy

    def _problem(self, path: tuple[str, ...], said: str) -> None:
        # A name in the document may be as long as the document, and problems stand in answers and Events.
        names = tuple(_cut(name, SHOWN_CHARACTERS) for name in path)
        self.problems.append(SettingProblem(names, _cut(said, SAID_CHARACTERS)))


def _said(value: Any) -> Any:
    """Return the value without null fields."""
    if isinstance(value, dict):
        return {name: _said(item) for name, item in value.items() if item is not None}
    return [_said(item) for item in value] if isinstance(value, list) else value


def _unknown(value: Any, prefix: str = "") -> Iterator[str]:
    """The fields that the model does not have, with the names that lead to them."""
    if isinstance(value, BaseModel):
        yield from (f"{prefix}{name}" for name in value.model_extra or ())
        fields = type(value).model_fields
        inner = {fields[name].alias or name: item for name, item in value if name in fields}
    elif isinstance(value, dict):
        inner = value
    else:
        inner = {str(index): item for index, item in enumerate(value)} if isinstance(value, list) else {}
    for name, item in inner.items():
        yield from _unknown(item, f"{prefix}{name}.")


def _first(lines: list[str]) -> list[str]:
    """So many lines, and how many more there are."""
    more = len(lines) - MAX_NAMED
    return [*lines[:MAX_NAMED], f"and {more} more"] if more > 0 else lines


def _shown(value: object) -> str:
    return _cut(repr(value), SHOWN_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
