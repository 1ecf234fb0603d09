"""How an LSE or LSR pod wants its CPUs, and which it was given: two annotations of Koordinator's scheduler.

Nothing here throws: a tenant writes these texts. What is required and cannot be read is a refusal, and what is only
preferred is left out and named.

Facts: docs/facts/koordinator-cpus.md#resource-spec.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from shared.core.cpus.cpuset import CpuSet
from shared.core.text.json_text import read_json_object
from shared.errors import Refused

RESOURCE_SPEC = "scheduling.koordinator.sh/resource-spec"
RESOURCE_STATUS = "scheduling.koordinator.sh/resource-status"
SPEC_BYTES, STATUS_BYTES = 512, 2048
"""Most bytes that are read: the longest of our own texts take a third of them."""

CpuBindPolicy = Literal["FullPCPUs", "SpreadByPCPUs"]
CpuExclusivePolicy = Literal["PCPULevel", "NUMANodeLevel"]
DEFAULT_POLICY: CpuBindPolicy = "FullPCPUs"
"""What Koordinator's word Default means, as its scheduler is delivered."""
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class CpuBinding:
    """What a pod says of the CPUs that it wants.

    `refusal`: why it can have none; empty where it can. `unread`: preferences that nobody knows, in words.
    """

    policy: CpuBindPolicy | None = None
    required: bool = False
    exclusive: CpuExclusivePolicy | None = None
    refusal: str = ""
    unread: tuple[str, ...] = ()


NO_BINDING = CpuBinding()


def cpu_binding(annotations: Mapping[str, str]) -> CpuBinding:
    """What the annotation says; nothing without it."""
    text = annotations.get(RESOURCE_SPEC)
    return NO_BINDING if text is None else _binding(text)


@lru_cache(maxsize=1024)
def _binding(text: str) -> CpuBinding:
    try:
        said = read_json_object(text, what=f"annotation {RESOURCE_SPEC}", max_bytes=SPEC_BYTES)
    except Refused as refusal:
        # It may require something: whole cores that are none would be a promise broken.
        return CpuBinding(refusal=f'{refusal}; write a JSON object such as {{"preferredCPUBindPolicy": "FullPCPUs"}}')
    required, preferred = said.get("requiredCPUBindPolicy"), said.get("preferredCPUBindPolicy")
    if required and _policy(required) is None:
        return CpuBinding(refusal=f"requiredCPUBindPolicy {_short(required)} is none that binds CPUs; write "
                          f"{' or '.join(get_args(CpuBindPolicy))}")  # fmt: skip
    unread = []
    if preferred and not required and _policy(preferred) is None:
        unread.append(f"preferredCPUBindPolicy {_short(preferred)} is none that binds CPUs")
    wanted = said.get("preferredCPUExclusivePolicy")
    exclusive = next((policy for policy in get_args(CpuExclusivePolicy) if policy == wanted), None)
    if wanted not in (None, "", "None") and exclusive is None:
        unread.append(f"preferredCPUExclusivePolicy {_short(wanted)} is none")
    return CpuBinding(_policy(required or preferred), bool(required), exclusive, unread=tuple(unread))


def _policy(word: object) -> CpuBindPolicy | None:
    if word == "Default":
        return DEFAULT_POLICY
    return next((policy for policy in get_args(CpuBindPolicy) if policy == word), None)


def _short(word: object) -> str:
    text = repr(word)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def bound_cpus(annotations: Mapping[str, str]) -> CpuSet:
    """The CPUs that a scheduler, or a node, has given the pod; empty where none are said, or none that can be read."""
    text = annotations.get(RESOURCE_STATUS)
    return CpuSet() if text is None else _bound(text)


@lru_cache(maxsize=1024)
def _bound(text: str) -> CpuSet:
    try:
        cpus = read_json_object(text, what=f"annotation {RESOURCE_STATUS}", max_bytes=STATUS_BYTES).get("cpuset")
        return CpuSet.parse(cpus) if isinstance(cpus, str) else CpuSet()
    except (Refused, ValueError):
        return CpuSet()


def resource_status(cpus: CpuSet, numas: Mapping[int, CpuSet]) -> str:
    """The annotation's text for a pod that has these CPUs, on a machine with these NUMA nodes.

    Facts: docs/facts/koordinator-cpus.md#resource-status.
    """
    parts = [(numa, len(inside & cpus)) for numa, inside in sorted(numas.items()) if inside & cpus]
    nodes = [{"node": numa, "resources": {"cpu": str(count)}} for numa, count in parts]
    return json.dumps({"cpuset": str(cpus)} | ({"numaNodeResources": nodes} if nodes else {}), separators=(",", ":"))
