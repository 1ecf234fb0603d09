"""`Block` replaces lines in a file that is written by hand around them; it finds them by how they look."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a file that follow each other: how one of them looks, and what all of them shall be."""

    looks: str
    lines: tuple[str, ...]

    def in_place(self, text: str) -> str:
        """The text with this block for every run of such lines, as far to the right as they were.

        Raises:
            LookupError: there are none.
        """
        found, count = re.subn(rf"(?m)^(?P<indent> *)(?:{self.looks})\n(?: *(?:{self.looks})\n)*", self._lines, text)
        if not count:
            raise LookupError(f"no line like {self.looks}")
        return found

    def _lines(self, run: re.Match[str]) -> str:
        return "".join(f"{run['indent']}{line}\n" for line in self.lines)
