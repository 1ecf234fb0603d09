"""Calls pure decisions: a typed question in JSON in, the answer in JSON out.

Every kind is registered where it is defined (`shared.whatif.decisions`). This module finds them by importing every
folder that contains some, reads questions, and turns failures into one of four codes: `invalid_json`, `unknown_kind`,
`invalid_input`, `internal`. A rule that refuses is not a failure: its code is part of the outputs.
"""

import importlib
import json
import pkgutil
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from shared.core.pydantic_words import first_fault
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import Refused
from shared.whatif.decisions import DecisionKind, decisions

WING = "whatif"
"""The package of a service that holds its decisions."""
REFUSAL_FIELDS = ("error", "message", "explain")
"""Fields that outputs hold only where they say something."""


_PLACE = re.compile(r"at line ([0-9]+) column ([0-9]+)$")


class Malformed(Refused):
    """A question that cannot be asked; its reason is one of the four codes."""

    def body(self) -> dict[str, str]:
        """The error as it is printed."""
        return {"code": self.reason, "message": str(self)}


def kinds() -> dict[str, DecisionKind]:
    """Every kind by name, ascending: imports the wing of each service, and the two of no service."""
    import services
    from shared import whatif as shared_questions
    from sublet import reference

    _import_below(shared_questions)
    _import_below(reference)
    for service in pkgutil.iter_modules(services.__path__, f"{services.__name__}."):
        # What lies beside the services and is none has no parts.
        package = importlib.import_module(service.name)
        for part in pkgutil.iter_modules(getattr(package, "__path__", [])):
            if part.name == WING:
                _import_below(importlib.import_module(f"{service.name}.{part.name}"))
    return decisions()


def _import_below(module: ModuleType) -> None:
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}."):
        importlib.import_module(found.name)


def answer(known: Mapping[str, DecisionKind], kind: Any, inputs: Any) -> dict[str, Any]:
    """The outputs of one question, as JSON values.

    Raises:
        Malformed: the kind is not known, the inputs do not fit it, or the decision failed on them.
    """
    decision = known.get(kind) if isinstance(kind, str) else None
    if decision is None:
        raise Malformed(_not_known(kind, known), reason="unknown_kind")
    if not isinstance(inputs, dict):
        raise Malformed(f"inputs: want an object, got {_json_type(inputs)}", reason="invalid_input")
    try:
        question = decision.inputs.model_validate_json(to_json(_said(inputs, decision.inputs.keeps_null)))
    except ValidationError as error:
        raise Malformed(_first_problem(error), reason="invalid_input") from error
    try:
        outputs = decision.function(question).model_dump(mode="json")
    except Refused as refusal:
        nothing = dict.fromkeys(decision.outputs.model_fields)
        outputs = nothing | {"error": refusal.reason, "message": str(refusal)}
    except OverflowError as error:
        raise _too_large(kind) from error
    except Exception as error:  # one failing question must not stop the stream
        raise Malformed(f"{kind}: {type(error).__name__}: {error}", reason="internal") from error
    try:
        json.dumps(outputs, allow_nan=False)
    except ValueError as error:
        raise _too_large(kind) from error
    return {name: value for name, value in outputs.items() if value is not None or name not in REFUSAL_FIELDS}


def _too_large(kind: Any) -> Malformed:
    return Malformed(f"{kind}: a number is too large or too small for any machine: give the real one",
                     reason="invalid_input")  # fmt: skip


def ask(known: Mapping[str, DecisionKind], kind: str, text: str | bytes) -> tuple[str, bool]:
    """One question: the line to print, and whether it could be asked at all."""
    try:
        return _line(answer(known, kind, _read(text))), True
    except Malformed as error:
        return _line({"error": error.body()}), False


def stream(known: Mapping[str, DecisionKind], lines: Iterable[str | bytes]) -> Iterator[str]:
    """One line out for each line in, in order; blank lines are passed over."""
    for line in lines:
        if line.strip():
            yield _line(_answer_line(known, line))


def _answer_line(known: Mapping[str, DecisionKind], line: str | bytes) -> dict[str, Any]:
    """Keys other than id, kind and inputs are ignored, so that a file of cases is a stream of questions."""
    name: Any = None
    try:
        asked = _read(line)
        if not isinstance(asked, dict):
            raise Malformed(f"line: want an object, got {_json_type(asked)}", reason="invalid_input")
        name = asked.get("id")
        for key in ("id", "kind", "inputs"):
            if asked.get(key) is None:
                raise Malformed(f"{key}: field required", reason="invalid_input")
        return {"id": name, "outputs": answer(known, asked["kind"], asked["inputs"])}
    except Malformed as error:
        return {"id": name, "error": error.body()}


def listing(known: Mapping[str, DecisionKind]) -> Iterator[str]:
    """One line for each kind: name, area, meaning, with tabs between."""
    return (f"{kind.name}\t{kind.area}\t{kind.meaning}" for kind in known.values())


def schema(known: Mapping[str, DecisionKind], kind: str) -> tuple[str, bool]:
    """The JSON Schemas of a kind's inputs and outputs, and whether the kind is known."""
    decision = known.get(kind)
    if decision is None:
        return _line({"error": Malformed(_not_known(kind, known), reason="unknown_kind").body()}), False
    inputs = decision.inputs.model_json_schema(mode="validation")
    outputs = decision.outputs.model_json_schema(mode="serialization")
    return _line({"kind": kind, "inputs": inputs, "outputs": outputs}), True


def _read(text: str | bytes) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Malformed(_not_json(text, str(error)), reason="invalid_json") from error


def _not_json(text: str | bytes, said: str) -> str:
    """Where the text stops being JSON; the library says so at the end of its sentence."""
    if not text.strip():
        return "nothing was given: want one JSON object, the inputs"
    place = _PLACE.search(said)
    where = f"line {place[1]}, column {place[2]}: " if place else ""
    return f"{where}not JSON: want one object with its strings in double quotes, no NaN, nothing behind it"


def _said(value: Any, keeps_null: Collection[str]) -> Any:
    """The value without fields that are null: null and absent are the same, but for what these names hold."""
    if isinstance(value, dict):
        return {
            key: item if key in keeps_null else _said(item, keeps_null)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_said(item, keeps_null) for item in value]
    return value


def _first_problem(error: ValidationError) -> str:
    return first_fault(error, whole="inputs")


def _not_known(kind: Any, known: Mapping[str, DecisionKind]) -> str:
    return f"kind {kind!r} is not known; {did_you_mean(str(kind), known, otherwise='see sublet whatif --list')}"


def _json_type(value: Any) -> str:
    names = {str: "a string", bool: "a boolean", list: "a list", type(None): "null"}
    return names.get(type(value), "a number")


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
