"""Annotations and labels that are kept of a pod: those that somebody reads, and no longer than they need to be.

A tenant may write a quarter of a megabyte of annotations and any number of labels, and every sample carries every pod
of the node. A value that is too long counts as not said, and the pod says that it is left out.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic_core import to_json

from shared.core.cgroups.kubelet_layout import CONFIG_HASH, CONFIG_MIRROR, CONFIG_PREFIX
from shared.core.pods.cpu_binding import RESOURCE_SPEC, RESOURCE_STATUS, SPEC_BYTES, STATUS_BYTES
from shared.core.pods.koord_qos import CPU_BURST, MEMORY_QOS, PRIORITY_CLASS_LABEL, QOS_LABEL
from shared.core.pods.qos import DOMAIN, QOS_LEVEL
from shared.core.pods.qos_annotations import NET_CLASS_ID, NUMA_BIND_RESULT, NUMA_IDS, NUMA_NUMBER

WORD_BYTES, ENHANCEMENT_BYTES = 128, 512
"""Most bytes of a value, as it is encoded in JSON: all that the readers know takes half of that."""
ANNOTATION_BYTES: Mapping[str, int] = {
    f"{CONFIG_PREFIX}source": WORD_BYTES,
    CONFIG_MIRROR: WORD_BYTES,
    CONFIG_HASH: WORD_BYTES,
    QOS_LEVEL: WORD_BYTES,
    f"{DOMAIN}cpu_enhancement": ENHANCEMENT_BYTES,
    f"{DOMAIN}memory_enhancement": ENHANCEMENT_BYTES,
    f"{DOMAIN}network_enhancement": ENHANCEMENT_BYTES,
    NUMA_BIND_RESULT: WORD_BYTES,
    NUMA_IDS: WORD_BYTES,
    NUMA_NUMBER: WORD_BYTES,
    NET_CLASS_ID: WORD_BYTES,
    f"{DOMAIN}nic_selection_result": WORD_BYTES,
    RESOURCE_SPEC: SPEC_BYTES,
    RESOURCE_STATUS: STATUS_BYTES,
    CPU_BURST: ENHANCEMENT_BYTES,
    MEMORY_QOS: ENHANCEMENT_BYTES,
}
"""Every annotation that a service of the node reads, and how long its value may be."""
LABELS_READ = (QOS_LABEL, PRIORITY_CLASS_LABEL)
"""Labels that a service knows by name."""
LABELS_BYTES = 1024
"""Most bytes of all labels: further ones, which an administrator's filter may name, are kept in the order of names."""
MOST_NAMED = 3


class Words(NamedTuple):
    """What is kept, and what is not though somebody would read it, in words."""

    annotations: dict[str, str]
    labels: dict[str, str]
    unread: tuple[str, ...]


def bounded(annotations: Mapping[str, object], labels: Mapping[str, object]) -> Words:
    """What is kept of a pod's annotations and labels; what is no text is left out like what is too long."""
    kept: dict[str, str] = {}
    unread: list[str] = []
    for key in ANNOTATION_BYTES.keys() & annotations.keys():
        value, most = annotations[key], ANNOTATION_BYTES[key]
        size = _size(value)
        if isinstance(value, str) and size <= most:
            kept[key] = value
        else:
            unread.append(f"annotation {key}: {size} bytes, at most {most} are read")
    named, left_out = _labels(labels)
    if left_out:
        unread.append(f"{left_out} of {len(labels)} labels: at most {LABELS_BYTES} bytes are read")
    return Words({key: kept[key] for key in annotations if key in kept}, named, _some(sorted(unread)))


def _labels(labels: Mapping[str, object]) -> tuple[dict[str, str], int]:
    """Those known by name first; how many are left out."""
    room = LABELS_BYTES
    kept: set[str] = set()
    for key, value in _known_first(labels):
        size = len(key) + _size(value)
        if isinstance(value, str) and size <= room:
            kept.add(key)
            room -= size
    return {key: str(value) for key, value in labels.items() if key in kept}, len(labels) - len(kept)


def _known_first(labels: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    yield from ((key, labels[key]) for key in LABELS_READ if key in labels)
    yield from ((key, value) for key, value in sorted(labels.items()) if key not in LABELS_READ)


def _size(value: object) -> int:
    """Encoded: a control character is six bytes."""
    return len(to_json(value))


def _some(words: list[str]) -> tuple[str, ...]:
    more = len(words) - MOST_NAMED
    return tuple(words) if more <= 0 else (*words[:MOST_NAMED], f"and {more} more")
