"""The configuration of all nodes: one document, a mapping of sections, with the switch `mode` next to them.

Central checks the shape; each service checks its own section against its own model and keeps its last valid one.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shared.core.node_mode import MODE_KEY, document_mode
from shared.core.text.did_you_mean import did_you_mean
from shared.core.text.yaml_text import YamlDocument, read_yaml
from shared.errors import BadConfig, Refused, SettingProblem

MAX_CONFIG_BYTES = 64 * 1024  # largest value of the bucket (docs/facts/nats.md#what-travels-how)
MAX_TEXT_BYTES = 4 * MAX_CONFIG_BYTES
"""Of the text with its comments."""


def read_config(text: str, *, known: Sequence[str]) -> dict[str, Any]:
    """Parse a YAML text into {section: {setting: value}}.

    Raises:
        BadConfig: as `read_config_text` and `config_of`.
    """
    return config_of(read_config_text(text).value, known=known)


def read_config_text(text: str, *, what: str = "configuration") -> YamlDocument:
    """Parse a YAML text into its values and the lines of their keys; `what` names it in errors.

    Raises:
        BadConfig: not YAML, a duplicate key, or too large for a configuration.
    """
    try:
        return read_yaml(text, what=what, max_bytes=MAX_TEXT_BYTES)
    except Refused as refusal:
        raise BadConfig(str(refusal), reason=refusal.reason) from None


def config_of(document: object, *, known: Sequence[str]) -> dict[str, Any]:
    """The same document, a mapping of known sections.

    Raises:
        BadConfig: not a mapping of known sections to mappings, or a value that JSON cannot say.
    """
    # An empty file is a valid configuration: defaults apply.
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise BadConfig(f"configuration: want a mapping of sections, got {type(document).__name__}", reason="malformed")
    document_mode(document, "configuration")
    problems = [problem for name, section in document.items() if (problem := _shape_problem(name, section, known))]
    if problems:
        said = "; ".join(map(str, problems))
        raise BadConfig(f"configuration: {said}", reason="invalid", problems=tuple(problems))
    # Here already: what the bucket could not hold is refused while a person looks at it.
    encode_config(document)
    return dict(document)


def _shape_problem(name: object, section: object, known: Sequence[str]) -> SettingProblem | None:
    if name == MODE_KEY:
        return None
    if name not in known:
        meant = did_you_mean(str(name), (*known, MODE_KEY))
        return SettingProblem((str(name),), f": no section {name!r}; {meant}")
    if not isinstance(section, Mapping):
        got = "empty" if section is None else type(section).__name__
        return SettingProblem((str(name),), f": section {name!r} is {got}, want a mapping of settings to values")
    return None


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
