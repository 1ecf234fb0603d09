"""Errors of the command line's parser in the uniform format: option, value, what is expected, where to read more."""

import re
import shlex
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from shared.core.text.did_you_mean import closest
from sublet.output import printable

MAX_VALUE_CHARS = 200


def usage_message(error: Any, program: str) -> str:
    """The words for an exception of typer, with the command whose help says more."""
    return f"{_problem(error)}; see: {_command(error, program)} --help"


def _command(error: Any, program: str) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else program


def _problem(error: Any) -> str:
    # By the names of their classes: which of them typer exports has changed from version to version.
    match type(error).__name__:
        case "NoSuchOption":
            return f"no option {_quoted(error.option_name)}{_meant(error.option_name, _options(error))}"
        case "MissingParameter":
            return f"{_parameter(error)} is missing"
        case "BadParameter":
            return _bad_value(error)
    message = str(error.message)
    if unknown := re.match(r"No such command '(.*?)'\.", message, re.DOTALL):
        return f"no command {_quoted(unknown[1])}{_meant(unknown[1], _commands(error))}"
    if needs := re.fullmatch(r"Option '(.+)' requires an argument\.", message):
        return f"{needs[1]} wants a value"
    if extra := re.match(r"Got unexpected extra argument(?:\(s\)|s)? \((.*)\)", message, re.DOTALL):
        return f"{_quoted(extra[1])} is one word too many for this command{_as_file(error, extra[1])}"
    return message.strip().rstrip(".")


def _as_file(error: Any, words: str) -> str:
    """How to name a file to a command that reads one, for whoever has typed its name alone."""
    context = getattr(error, "ctx", None)
    reads_files = context is not None and any("-f" in one.opts and not one.is_flag for one in context.command.params)
    return f": a file is named by -f {shlex.quote(words)}" if reads_files and words.isprintable() else ""


def _bad_value(error: Any) -> str:
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        first = cause.errors(include_url=False)[0]
        return f"{_parameter(error)} {_quoted(first['input'])}: {_wanted(error, first)}"
    name = _parameter(error)
    return f"{name}: {error.message}" if name else str(error.message)


def _wanted(error: Any, first: Any) -> str:
    """What the parameter wants instead, with both bounds where it has them."""
    described = getattr(error.param, "type_descriptor", None)
    info = getattr(described, "parameter_info", None)
    if str(first["type"]).startswith(("int", "float", "finite", "greater", "less")):
        number = "a whole number" if _is_whole(described, first) else "a number"
        return f"want {number}{_bounds(getattr(info, 'min', None), getattr(info, 'max', None))}"
    message = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    if choices := re.search(r" is not one of (.+)$", message, re.DOTALL):
        names = [name for name in re.findall(r"'([^']*)'", choices[1]) if name]
        return f"want {_or(names)}{_meant(str(first['input']), names)}"
    return message


def _is_whole(described: Any, first: Any) -> bool:
    return str(first["type"]).startswith("int") or "float" not in str(getattr(described, "annotation", "int"))


def _bounds(lowest: float | None, highest: float | None) -> str:
    if lowest is not None and highest is not None:
        return f" from {lowest} to {highest}"
    if lowest is not None:
        return f" of {lowest} or more"
    return "" if highest is None else f" of {highest} or less"


def _parameter(error: Any) -> str:
    hint = error.param_hint
    if hint is None and error.param is not None:
        names = (
            error.param.opts if error.param.param_type_name == "option" else [error.param.metavar or error.param.name]
        )
        hint = names[0]
    return " / ".join(hint) if isinstance(hint, list | tuple) else str(hint or "")


def _options(error: Any) -> list[str]:
    parameters = error.ctx.command.get_params(error.ctx) if error.ctx is not None else []
    return [name for parameter in parameters for name in parameter.opts if name.startswith("-")]


def _commands(error: Any) -> list[str]:
    return list(getattr(error.ctx.command, "commands", {})) if error.ctx is not None else []


def _meant(name: str, known: Iterable[str]) -> str:
    hint = closest(name, known)
    return f" (did you mean {hint!r}?)" if hint is not None else ""


def _or(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _quoted(value: object) -> str:
    text = printable(str(value))
    return repr(text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…")
