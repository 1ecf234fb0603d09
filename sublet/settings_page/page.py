"""The page: an introduction, a table of contents, and a table for each section."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from shared.settings import FILE_VARIABLE, PREFIX, inner_model
from sublet.settings_page.sections import Section, sections
from sublet.settings_page.sentences import sentence, summary
from sublet.settings_page.values import bounds_text, default_text, unit_of

INTRO = f"""# Settings

Every key of every service. This page is made from the models (`make settings`), and a test compares it with them.

A setting has its default, unless a YAML file or the environment says otherwise; the environment counts more than the
file. The file is the one that the variable `{FILE_VARIABLE}` names. In the file a key stands in the mapping of its
section; in the name of a variable two underscores part the levels, and its value is read as YAML. The two examples say
the same:

```yaml
heartbeat_s: 2
advisor:
  policy: percentile
  policies: {{percentile: {{margin_percent: 15}}}}
```

```
{PREFIX}HEARTBEAT_S=2
{PREFIX}ADVISOR__POLICY=percentile
{PREFIX}ADVISOR__POLICIES__PERCENTILE__MARGIN_PERCENT=15
```

A key that does not exist or stands twice, or a value out of its bounds, is refused before anything starts, with file
and line or variable, key, value and what is wanted. `sublet config validate` checks settings and configurations without
a running Sublet, `sublet config explain KEY` says of one key what stands here, and `sublet config schema` prints a JSON
Schema for editors. Bounds are included, but for those that are called above or below. What the sentences call None is
`null` in YAML.

What is kept on disk, for how long, and how large it may become, also where no setting says so: [state.md](state.md).

Metric sources have no settings. Policies and plugins of other wheels have the keys that their authors gave them, below
the names of their entry points.
"""

_COLUMNS = "| key, variable | default | may be | unit | meaning |\n|---|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One key, as it is shown; a key that holds others has no variable."""

    key: str
    variable: str
    default: str
    bounds: str
    unit: str
    sentence: str

    @property
    def markdown(self) -> str:
        """The row of a table."""
        name = f"`{self.key}`<br>`{self.variable}`" if self.variable else f"`{self.key}`"
        cells = (name, self.default, self.bounds, self.unit, self.sentence)
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def rows(section: Section) -> Iterator[SettingRow]:
    """The keys of a section, in the order of its model.

    Raises:
        BadConfig: a field has no sentence, or is a number without a known unit.
    """
    schema = section.model.model_json_schema()
    for key, field in section.model.model_fields.items():
        path, said = (*section.path, key), sentence(section.model, key)
        if inner_model(field) is not None:
            title = ".".join(path)
            default = "" if isinstance(field.default, BaseModel) else _default(section, key, field, "")
            yield SettingRow(key, "", default, f"the keys of [{title}](#{anchor(title)})", "", said)
        else:
            unit = unit_of(key, schema["properties"][key])
            bounds = bounds_text(schema["properties"][key], schema.get("$defs", {}), unit)
            yield SettingRow(key, variable(path), _default(section, key, field, unit), bounds, unit, said)


def variable(path: tuple[str, ...]) -> str:
    """The environment variable of a key."""
    return PREFIX + "__".join(path).upper()


def anchor(heading: str) -> str:
    """The heading as GitHub makes it the end of an address."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def page() -> str:
    """The whole page."""
    found = list(sections())
    contents = [f"{'  ' if len(one.path) > 1 else ''}- [{one.title}](#{anchor(one.title)})" for one in found]
    return "\n".join([INTRO, "## Contents", "", *contents, "", "\n".join(map(_table, found))])


def _table(section: Section) -> str:
    level = "##" if len(section.path) <= 1 else "###"
    lines = [f"{level} {section.title}", "", section.about, "", _COLUMNS, *(row.markdown for row in rows(section))]
    return "\n".join([*lines, ""])


def _default(section: Section, key: str, field: FieldInfo, unit: str) -> str:
    """The default of a key; where the machine decides it, how."""
    if field.default_factory is not None:
        return summary(field.default_factory).rstrip(".")
    value = field.default if section.values is None else getattr(section.values, key)
    return "must be given" if value is PydanticUndefined else default_text(value, unit)
