"""Loads an author's file as a module: read with a bound, compiled and run; errors name the line."""

import importlib.util
import sys
from importlib.abc import ExecutionLoader
from types import ModuleType

from shared.errors import Refused
from sublet.laws.place import line_at_work
from sublet.terminal.given_file import read_given_text

MAX_SOURCE_BYTES = 1 << 20


class _GivenLoader(ExecutionLoader):
    """Runs a text that was read already, and leaves no compiled file beside it."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002
        return self.file

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return self.text

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002
        return False


def given_module(file: str, noun: str) -> tuple[ModuleType, str]:
    """The module that a file is, and its text.

    Raises:
        Refused: it cannot be read, is no Python, or raises while it is imported; file and line are named.
    """
    text = read_given_text(file, what=f"{noun} file", max_bytes=MAX_SOURCE_BYTES)
    name = f"sublet_given_{noun}"
    spec = importlib.util.spec_from_loader(name, _GivenLoader(file, text))
    if spec is None or spec.loader is None:
        raise Refused(f"{noun} file {file}: cannot be imported", reason="file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pydantic look their module up by its name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    # Also SystemExit: a script that ends itself is no reason to end without a word.
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise Refused(
            f"{noun} file {line_at_work(error, file) or file}: {said}; mend the line", reason="file"
        ) from error
    return module, text
