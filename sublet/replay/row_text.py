"""`NAME[=ALIAS][:KEY=VALUE,…]`: how the options of `sublet replay` name a row, its settings, and what it is called."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.core.text.yaml_text import read_yaml
from shared.errors import BadConfig


@dataclass(frozen=True, slots=True)
class RowText:
    """A row as it was typed."""

    name: str
    alias: str
    """What the row is called: the whole text where no alias is given."""
    given: Mapping[str, Any]

    @classmethod
    def of(cls, option: str, text: str) -> "RowText":
        """The parts of the text.

        Raises:
            BadConfig: it is not of that form.
        """
        from shared.settings import MAX_VARIABLE_BYTES

        head, colon, rest = text.partition(":")
        name, equals, alias = head.partition("=")
        if (colon and not rest) or (equals and not alias.strip()):
            raise BadConfig(
                f"{option} {text}: want NAME, or NAME:key=value,key=value; =ALIAS behind NAME calls the row so",
                reason="invalid",
            )
        given: dict[str, Any] = {}
        for item in filter(None, rest.split(",")):
            key, is_given, value = item.partition("=")
            if not is_given or not key.strip():
                raise BadConfig(f"{option} {text}: want NAME:key=value,key=value, not {item!r}", reason="invalid")
            given[key.strip()] = read_yaml(value, what=f"{option} {text}", max_bytes=MAX_VARIABLE_BYTES).value
        return cls(name, alias.strip() or text, given)
