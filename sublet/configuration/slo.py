"""The effect of a ConfigMap `slo-controller-config` on a node, for `sublet config slo`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from services.central.core.kcc.selectors import parse_selector
from services.central.core.slo.config_map import MAX_KEY_BYTES, ReadSloConfig, read_slo_config
from services.central.core.slo.effective import BUILT_IN, EffectiveStrategy, effective_slo
from services.central.core.slo.keys import CLUSTER, SHAPES, SLO_KEYS, SloKey
from services.central.core.slo.settings import SloSettings, settings_of_strategy
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.readiness import node_config_key
from shared.core.text.yaml_text import read_yaml
from shared.errors import Refused
from shared.ports import Bus
from shared.settings import merge
from sublet.ask import read_answer
from sublet.output import columns, printable

CONFIG_MAP = "slo-controller-config"


@dataclass(frozen=True, slots=True)
class SloReport:
    """What was read, and what of it holds on the node."""

    read: ReadSloConfig
    effective: Mapping[SloKey, EffectiveStrategy]

    @property
    def lines(self) -> list[str]:
        """What is wrong, then what nobody reads."""
        wrong = [f"{problem}" for problem in self.read.problems]
        return [printable(line) for line in (*wrong, *(f"{line} (ignored)" for line in self.read.unknown))]

    def table(self) -> str:
        """A row for each value: key, field, value, and whose it is."""
        rows = [
            [key, printable(path), printable(json.dumps(value, ensure_ascii=False)), printable(source)]
            for key, found in self.effective.items()
            for path, value, source in found.rows()
        ]
        return columns(("KEY", "FIELD", "VALUE", "FROM"), rows)

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        keys = {
            key: {"strategy": dict(found.strategy), "from": dict(found.sources)}
            for key, found in self.effective.items()
        }
        return {"keys": keys, "problems": [str(one) for one in self.read.problems], "ignored": list(self.read.unknown)}

    def settings(self) -> dict[str, Any]:
        """Sublet's settings that do the same on the node."""
        found: dict[str, Any] = {}
        for one in self._followed:
            found = merge(found, one.settings)
        return found

    @property
    def unfollowed(self) -> list[str]:
        """Values that no setting takes."""
        return [printable(line) for one in self._followed for line in one.unfollowed]

    @property
    def _followed(self) -> list[SloSettings]:
        return [settings_of_strategy(key, one.said) for key, one in self.effective.items()]


def report(text: str, name: str, labels: str) -> SloReport:
    """Read a ConfigMap, and see what holds on a node with these labels ("a=b,c=d").

    Raises:
        Refused: no ConfigMap, or labels that cannot be read. What is wrong with a key stands in the report.
    """
    read = read_slo_config(_data(text, name))
    return SloReport(read, effective_slo(read.config, _labels(labels)))


async def report_in_force(bus: Bus, node: str) -> SloReport:
    """See what of the ConfigMap that central follows is in force on a node, as the bus has it.

    Raises:
        Refused: central has handed nothing of it to that node.
        Unavailable: the bucket cannot be read now.
    """
    entry = await bus.get(CONFIG_BUCKET, node_config_key(node))
    document = read_answer(entry.value) if entry is not None and entry.value is not None else None
    said = (document or {}).get("slo")
    if not isinstance(said, Mapping):
        raise Refused(
            f"node {node}: nothing of a ConfigMap is in force there: either it says nothing of what nodes follow, or "
            "central does not follow it (slo.enabled of the chart)",
            reason="not_followed",
        )
    rows = {key: strategy if SHAPES[key].inline else {CLUSTER: strategy} for key, strategy in said.items()
            if key in SHAPES}  # fmt: skip
    read = read_slo_config({key: json.dumps(row) for key, row in rows.items()})
    effective = {key: found for key, found in effective_slo(read.config, {}).items() if key in rows}
    return SloReport(read, {key: replace(found, sources=_of_config_map(found)) for key, found in effective.items()})


def _of_config_map(found: EffectiveStrategy) -> dict[str, str]:
    return {path: BUILT_IN if source == BUILT_IN else "ConfigMap" for path, source in found.sources.items()}


def _data(text: str, name: str) -> Mapping[str, str]:
    """The data of the object, or the object itself where it has keys of the ConfigMap."""
    document = read_yaml(text, what=name, max_bytes=2 * MAX_KEY_BYTES).value
    if isinstance(document, Mapping) and document.get("kind") == "ConfigMap":
        document = document.get("data")
    if not isinstance(document, Mapping) or not any(key in document for key in SLO_KEYS):
        known = ", ".join(SLO_KEYS)
        raise Refused(f"{name}: no ConfigMap {CONFIG_MAP}; want its data, of which one key is {known}", reason="shape")
    if wrong := next((key for key, value in document.items() if not isinstance(value, str)), None):
        raise Refused(f"{name}: {wrong}: want JSON as text, as in a ConfigMap ('{wrong}: |')", reason="shape")
    return dict(document)


def _labels(text: str) -> dict[str, str]:
    try:
        parts = parse_selector(text).requirements
    except Refused as refusal:
        raise Refused(f"--labels: {refusal}", reason="usage") from None
    labels = {part.key: value for part in parts if part.operator == "in" for value in part.values}
    if len(labels) != len(parts) or any(len(part.values) != 1 for part in parts):
        raise Refused(f"--labels {text!r}: want the labels of one node, as in zone=a,disk=ssd", reason="usage")
    return labels
