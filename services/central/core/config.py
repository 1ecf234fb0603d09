"""The configuration of all nodes: one document, a mapping of sections, and the switch `mode` beside them.

Central checks the shape; each service checks its own section against its own model and keeps its last good one.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from shared.core.node_mode import MODE_KEY, document_mode
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import BadConfig

MAX_CONFIG_BYTES = 64 * 1024  # largest value of the bucket (docs/facts/nats.md#what-travels-how)


def read_config(text: str, *, known: Sequence[str]) -> dict[str, Any]:
    """The document behind a YAML text: {section: {setting: value}}.

    Raises:
        BadConfig: not YAML, not a mapping of known sections to mappings, or a value that JSON cannot say.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadConfig(f"configuration: not YAML: {error}", reason="malformed") from error
    # An empty file is a configuration that says nothing: defaults hold.
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise BadConfig(f"configuration: want a mapping of sections, got {type(document).__name__}", reason="malformed")
    document_mode(document, "configuration")
    for name, section in document.items():
        if name == MODE_KEY:
            continue
        if name not in known:
            meant = did_you_mean(str(name), (*known, MODE_KEY))
            raise BadConfig(f"configuration: no section {name!r}; {meant}", reason="invalid")
        if not isinstance(section, Mapping):
            raise BadConfig(
                f"configuration: section {name!r} is {type(section).__name__}, want a mapping", reason="malformed"
            )
    # Here already: what the bucket could not hold is refused while a person looks at it.
    encode_config(document)
    return dict(document)


def encode_config(document: Mapping[str, Any]) -> bytes:
    """The one spelling of a document in the bucket: JSON, keys ascending.

    Raises:
        BadConfig: a value JSON cannot say (a date, NaN, a key that is not text), or more than the bucket holds.
    """
    try:
        # One spelling, so that "has it changed" is a comparison of bytes.
        payload = json.dumps(document, sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise BadConfig(f"configuration: {error}; use numbers, text, lists and mappings", reason="malformed") from error
    if len(payload) > MAX_CONFIG_BYTES:
        raise BadConfig(f"configuration: {len(payload)} bytes, at most {MAX_CONFIG_BYTES} are kept", reason="too_large")
    return payload
