"""KCC and config objects as the API server holds them, and what their status should say.

Facts: docs/facts/katalyst-cluster.md#valid-configs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from services.central.core.katalyst.settings import Mapped, settings_of
from services.central.core.kcc.kinds import Kcc
from services.central.core.kcc.targets import VALIDATE_FAILED, KccTarget
from services.central.core.objects.cnc import ConfigEntry
from services.central.core.rollout.config_hash import hash_of
from services.central.core.rollout.rollout import Rolled
from shared.core.api_kind import CONFIG_GROUP
from shared.core.pydantic_words import field_faults
from shared.core.text.durations import duration_ns, expired, moment_ns
from shared.errors import Refused

VERSION = "v1alpha1"
NO_NODE = "/"
"""No node has such a name: what cannot be read is for none."""


@dataclass(frozen=True, slots=True)
class KccSeen:
    """A KCC; `problem` says what is wrong with it by itself."""

    namespace: str
    name: str
    generation: int
    kcc: Kcc
    problem: str
    status: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetSeen:
    """A config object with its settings; `problem` says what is wrong with its content."""

    target: KccTarget
    uid: str
    created: str
    problem: str
    mapped: Mapped
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """The hash of its config, by which a CNC knows it."""
        return hash_of(self.target.spec_config)

    def over(self, now: str) -> bool:
        """Whether it was temporary, and its time has passed; one whose times cannot be read stays."""
        if self.target.last_duration is None or not self.target.node_names or self.problem:
            return False
        try:
            return expired(moment_ns(self.created), duration_ns(self.target.last_duration), moment_ns(now))
        except Refused:
            return False


def kcc_of(document: Mapping[str, Any]) -> KccSeen:
    """A KCC in either shape: with a list of allowed label keys, or with the one of old."""
    meta = document["metadata"]
    name = f"{meta['namespace']}/{meta['name']}"
    try:
        kcc, problem = _kcc(name, document.get("spec") or {})
    except ValidationError as error:
        kcc, problem = Kcc(name=name, target_type=""), _words(error)
    except (AttributeError, TypeError) as error:
        kcc, problem = Kcc(name=name, target_type=""), f"spec: cannot be read: {error}"
    return KccSeen(meta["namespace"], meta["name"], meta.get("generation") or 1, kcc, problem,
                   document.get("status") or {})  # fmt: skip


def _kcc(name: str, spec: Mapping[str, Any]) -> tuple[Kcc, str]:
    """The KCC, and what is wrong with the kind that it names."""
    kind, problem = spec.get("targetType") or {}, ""
    allowed = [{"priority": row.get("priority") or 0, "keys": row.get("keyList") or []}
               for row in spec.get("nodeLabelSelectorAllowedKeyList") or ()]  # fmt: skip
    if not allowed and spec.get("nodeLabelSelectorKey"):
        allowed = [{"priority": 0, "keys": [spec["nodeLabelSelectorKey"]]}]
    for part, wanted in (("version", VERSION), ("group", CONFIG_GROUP)):
        if kind.get(part) != wanted:
            problem = f"spec.targetType.{part} = {kind.get(part)!r}: want {wanted}"
    resource = str(kind.get("resource") or "")
    return Kcc.model_validate({"name": name, "target_type": resource, "allowed_keys": allowed}), problem


def target_of(document: Mapping[str, Any]) -> TargetSeen:
    """Read a config object; an unreadable one applies to no node, and nodes that have it keep their state."""
    meta = document["metadata"]
    head = {"namespace": meta["namespace"], "name": meta["name"], "generation": meta.get("generation") or 1,
            "deleting": bool(meta.get("deletionTimestamp"))}  # fmt: skip
    # Stands for one that cannot be read: it is counted and shown, and claims no node.
    target, problem, mapped = KccTarget(**head, node_names=[NO_NODE], last_duration="1h"), "", Mapped({})
    try:
        target = _target(head, document.get("spec") or {})
        mapped = settings_of(target.spec_config)
    except ValidationError as error:
        problem = _words(error)
    except Refused as refusal:
        problem = str(refusal)
    except (AttributeError, TypeError) as error:
        problem = f"spec: cannot be read: {error}"
    return TargetSeen(target, meta["uid"], meta.get("creationTimestamp") or "", problem, mapped,
                      document.get("status") or {})  # fmt: skip


def _target(head: Mapping[str, Any], spec: Mapping[str, Any]) -> KccTarget:
    ephemeral = spec.get("ephemeralSelector") or {}
    return KccTarget.model_validate(
        {
            **head,
            "label_selector": spec.get("nodeLabelSelector") or None,
            "priority": spec.get("priority") or 0,
            "node_names": ephemeral.get("nodeNames"),
            "last_duration": ephemeral.get("lastDuration"),
            "paused": spec.get("paused") or False,
            "update_strategy": spec.get("updateStrategy"),
            "spec_config": spec.get("config") or {},
        }
    )


def _words(error: ValidationError) -> str:
    fault = field_faults(error)[0]
    return f"spec.{'.'.join(fault.path)} = {fault.given!r}: {fault.wish}"


def kcc_status(seen: KccSeen, reason: str, message: str, invalid: list[str], now: str) -> dict[str, Any]:
    """Return a KCC's status; `invalid` are its refused config objects."""
    valid = _condition(seen.status, reason == "Normal", reason, message, now)
    return {"observedGeneration": seen.generation, "invalidTargetConfigList": invalid, "conditions": [valid]}


def refused_status(seen: TargetSeen, refusal: Refused, now: str) -> dict[str, Any]:
    """Return the status of a refused object; its counters stay those of its last valid state."""
    valid = _condition(seen.status, False, refusal.reason or VALIDATE_FAILED, str(refusal), now)
    return {"observedGeneration": seen.target.generation, "conditions": [valid]}


@dataclass(frozen=True, slots=True)
class Updated:
    """How many nodes report that they work with an object, and how many of these it is for now."""

    nodes: int
    target_nodes: int

    @classmethod
    def of(cls, own: Collection[str], reporting: set[str]) -> "Updated":
        """Count the nodes that report it; `own` are those that it is for."""
        return cls(len(reporting), len(reporting.intersection(own)))


def rolled_status(seen: TargetSeen, rolled: Rolled, updated: Updated, now: str) -> dict[str, Any]:
    """Return the status of an accepted object: a node counts as updated by its agent's own report."""
    return {
        "targetNodes": rolled.target_nodes,
        "canaryNodes": rolled.canary_nodes,
        "updatedTargetNodes": updated.target_nodes,
        "updatedNodes": updated.nodes,
        "currentHash": rolled.hash,
        "observedGeneration": seen.target.generation,
        "conditions": [_condition(seen.status, True, "Normal", seen.mapped.note, now)],
    }


def _condition(status: Mapping[str, Any], valid: bool, reason: str, message: str, now: str) -> dict[str, Any]:
    word = "True" if valid else "False"
    before: Mapping[str, Any] = next((row for row in status.get("conditions") or () if row.get("type") == "Valid"), {})
    # Kubernetes' rule: the time is that of a change of status, and a new reason alone is none.
    since = before.get("lastTransitionTime") if before.get("status") == word else None
    return {"type": "Valid", "status": word, "reason": reason, "message": message, "lastTransitionTime": since or now}


def same_status(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether everything wanted is there."""
    # Only what is ours: other fields belong to others, and a write for their sake would never end.
    return all(there.get(key) == value for key, value in wanted.items())


def cnc_status(entries: Sequence[ConfigEntry]) -> dict[str, Any]:
    """A CNC's status, entries in the order of their kinds."""
    rows = [
        {
            "configType": {"group": CONFIG_GROUP, "version": VERSION, "resource": entry.type},
            "configNamespace": entry.namespace,
            "configName": entry.name,
            "hash": entry.hash,
        }
        for entry in sorted(entries, key=lambda entry: entry.type)
    ]
    return {"katalystCustomConfigList": rows}
