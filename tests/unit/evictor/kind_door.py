"""Asks a kind as `sublet whatif` does: JSON in, JSON out."""

import json
from typing import Any

from sublet.whatif import kinds

KNOWN = kinds()

GIB = 1 << 30


def ask(kind: str, **inputs: Any) -> dict[str, Any]:
    found = KNOWN[kind]
    return found.function(found.inputs.model_validate_json(json.dumps(inputs))).model_dump(mode="json")


def says(answer: dict[str, Any], **want: Any) -> bool:
    """Whether an answer holds these outputs; shown by pytest where it does not."""
    assert {name: answer[name] for name in want} == want
    return True
