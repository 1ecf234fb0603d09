"""Settings on the command line for a test: KEY=VALUE, with the value as in a settings file."""

from collections.abc import Iterable
from typing import Any

from shared.core.text.yaml_text import read_yaml
from shared.errors import BadConfig
from shared.settings import MAX_VARIABLE_BYTES


def given_settings(given: Iterable[str]) -> dict[str, Any]:
    """The values by their keys.

    Raises:
        BadConfig: a word is no KEY=VALUE, or its value no YAML.
    """
    values = {}
    for word in given:
        key, equals, text = word.partition("=")
        if not (key and equals):
            raise BadConfig(f"--set {word}: want KEY=VALUE, as tasks_per_cpu=4", reason="invalid")
        values[key] = read_yaml(text, what=f"--set {word}", max_bytes=MAX_VARIABLE_BYTES).value
    return values
