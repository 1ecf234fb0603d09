"""Asks a kind as `sublet whatif` does: JSON in, JSON out."""

import importlib
import json
import pkgutil
from typing import Any

from services.evictor import core
from shared.core.decisions import decisions

for found in pkgutil.walk_packages(core.__path__, f"{core.__name__}."):
    importlib.import_module(found.name)  # each registers its kinds

GIB = 1 << 30


def ask(kind: str, **inputs: Any) -> dict[str, Any]:
    found = decisions()[kind]
    return found.function(found.inputs.model_validate_json(json.dumps(inputs))).model_dump(mode="json")


def says(answer: dict[str, Any], **want: Any) -> bool:
    """Whether an answer holds these outputs; shown by pytest where it does not."""
    assert {name: answer[name] for name in want} == want
    return True
