"""`Given` holds a user's settings, and knows for each key the file or variable that contains it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.core.text.yaml_text import YamlDocument
from shared.settings import FILE_VARIABLE, PREFIX, merge, read_document, read_environment

NOTHING = YamlDocument({}, {})


@dataclass(frozen=True, slots=True)
class Given:
    """A document over a base: settings of a file and of the environment, or a configuration over these."""

    document: YamlDocument
    name: str = ""
    """Of the file; "" where there is none."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment; they count more than the document."""
    base: "Given | None" = None
    """What the document stands on: the settings, below a configuration."""

    @property
    def values(self) -> dict[str, Any]:
        """All together, as a service gets it.

        Raises:
            BadConfig: a variable cannot be read.
        """
        own = merge(self.document.value or {}, read_environment(self.variables))
        return own if self.base is None else merge(self.base.values, own)

    def place_of(self, path: tuple[str, ...]) -> str:
        """Where a key was given: a variable, or a file and line; "" for a key that nobody has given."""
        for length in range(len(path), 0, -1):
            name = PREFIX + "__".join(path[:length]).upper()
            if variable := next((one for one in sorted(self.variables) if f"{one}__".startswith(f"{name}__")), ""):
                return variable
            if path[:length] in self.document.lines:
                return f"{self.name}:{self.document.lines[path[:length]]}"
        return "" if self.base is None else self.base.place_of(path)


def given_settings(env: Mapping[str, str], file: Path | None = None) -> Given:
    """The settings of a process with this environment.

    Raises:
        BadConfig: the file cannot be read, or is no mapping.
    """
    if file is None and env.get(FILE_VARIABLE):
        file = Path(env[FILE_VARIABLE])
    own = {name: value for name, value in env.items() if name.startswith(PREFIX)}
    if file is None:
        return Given(NOTHING, variables=own)
    return Given(read_document(file), str(file), own)
