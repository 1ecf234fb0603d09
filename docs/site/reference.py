"""`make reference`: pages of commands, messages, kinds, rights and log lines, from the parser, the schemas, the
manifests and the code.

python docs/site/reference.py docs/reference
"""

import json
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import chart_values
import typer
import yaml
from log_calls import log_calls
from typer.core import TyperCommand, TyperGroup

from shared.contracts.logs.events import LOG_EVENTS
from shared.core.scan import modules_in
from sublet import cli, commands

ROOT = Path(__file__).resolve().parents[2]
COMMANDS_HEAD = """\
# Commands

`make reference` generates this page from the parser. Exit codes: [exit-codes.md](../exit-codes.md).
`sublet --version` prints the version; `sublet --debug COMMAND` writes the trace of a fault of Sublet itself to a file.
Colours are used on a terminal only, and never where `NO_COLOR` is set."""
MESSAGES_HEAD = """\
# Messages

`make reference` generates this page from [asyncapi.json](../schemas/asyncapi.json), which `make schemas` writes from
the models. How to subscribe to evictions: [subscribing.md](../subscribing.md); how to add a message:
[writing-a-message.md](../writing-a-message.md).

| message | subject | how it travels | meaning | schema |
|---|---|---|---|---|"""
KINDS_HEAD = """\
# Kinds of objects

`make reference` generates this page from `deploy/k8s/crds`. Fields are shown to their second level; `kubectl explain`
shows all."""
RIGHTS_HEAD = """\
# Rights

`make reference` generates this page from `deploy/k8s/base`, the plain installation. Parts that are off by default bring
theirs from `deploy/k8s/chart/templates`. An agent's token is narrowed further to its own node: in the API server by
ValidatingAdmissionPolicies, on the bus by its login ([SECURITY.md](../../SECURITY.md))."""

LOGS_HEAD = """\
# Log lines

`make reference` generates this page from the code and `shared/contracts/logs`. A process writes one JSON object a line
to standard error (`log_json`); [LogLine.json](../schemas/LogLine.json) is its schema. `event`, `level`, `timestamp`,
`service` and `node` are in every line. `intent_id` and `pod_uid` join an eviction's lines with its events and spans,
`trace_id` and `span_id` with its trace ([tracing](../tracing.md)). A name stays what it is from version to version.

| event | level | written by | its keys | meaning |
|---|---|---|---|---|"""

CHART_HEAD = """\
# Values of the chart

`make reference` generates this page from `deploy/k8s/chart/values.yaml`; `values.schema.json` beside it says what each
may be, and Helm refuses what it does not know. `values-demo.yaml`, `values-default.yaml` and `values-ha.yaml` are three
sets to begin with. The sections of `settings` and `config` are those of [settings](../settings.md).

| value | default | meaning |
|---|---|---|"""


def commands_page() -> str:
    """Every command with its words, options and help."""
    lines = [COMMANDS_HEAD]
    for words, command in sorted(_leaves(typer.main.get_group(cli.build(modules_in(commands))))):
        lines += ["", f"## sublet {words}", "", *_paragraphs(command.help or ""), "", *_parameters(command)]
    return "\n".join(lines).rstrip() + "\n"


def _leaves(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, TyperCommand]]:
    for name, inner in group.commands.items():
        if inner.hidden:
            continue
        if isinstance(inner, TyperGroup):
            yield from _leaves(inner, (*path, name))
        elif isinstance(inner, TyperCommand):
            yield " ".join((*path, name)), inner


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.replace("\b", "").strip().split("\n\n")):
        if number:
            yield ""
        yield _cell(paragraph)


def _parameters(command: TyperCommand) -> Iterator[str]:
    shown: list[Any] = [one for one in command.params if not getattr(one, "hidden", False)]
    if not shown:
        return
    yield "| word | meaning | default |"
    yield "|---|---|---|"
    for one in shown:
        option = one.param_type_name == "option"
        words = (*one.opts, *one.secondary_opts) if option else (str(one.metavar or one.name).replace("|", "\\|"),)
        names = ", ".join(f"`{word}`" for word in words)
        # A bar ends a cell, also in code.
        value = f" `{one.metavar}`".replace("|", "\\|") if option and one.metavar else ""
        plain = isinstance(one.default, str | int | float) and one.default not in ("", False, True)
        default = f"`{one.default}`" if plain else ""
        yield f"| {names}{value} | {_cell(one.help or '')} | {default} |"


def _cell(text: str) -> str:
    """Text as Markdown shows it: one line, nothing in it is a tag or a column."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    pieces[::2] = [re.sub(r"([<>])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces).replace("|", "\\|")


def messages_page() -> str:
    """Every message by its subject, with its schema."""
    document = json.loads((ROOT / "docs/schemas/asyncapi.json").read_text())
    lines = [MESSAGES_HEAD]
    messages = document["components"]["messages"]
    for channel in document["channels"].values():
        for name in channel["messages"]:
            title = _cell(str(messages[name].get("title", "")))
            schema = f"[{name}.json](../schemas/{name}.json)" if (ROOT / f"docs/schemas/{name}.json").is_file() else ""
            about = _cell(str(channel.get("description", "")))
            lines.append(f"| {name} | `{channel['address']}` | {about} | {title} | {schema} |")
    return "\n".join(lines) + "\n"


def kinds_page() -> str:
    """Every kind of object that Sublet serves, with its columns and fields."""
    lines = [KINDS_HEAD]
    for file in sorted((ROOT / "deploy/k8s/crds").glob("*.yaml")):
        document = yaml.safe_load(file.read_text())
        if document.get("kind") == "CustomResourceDefinition":
            lines += ["", *_kind(document["spec"])]
    return "\n".join(lines) + "\n"


def _kind(spec: dict[str, Any]) -> Iterator[str]:
    names = spec["names"]
    short = ", ".join(f"`{name}`" for name in names.get("shortNames", ())) or "none"
    yield f"## {names['kind']}"
    yield ""
    yield f"`{names['plural']}.{spec['group']}`, {spec['scope']}; short names: {short}."
    for version in spec["versions"]:
        columns = ", ".join(_cell(column["name"]) for column in version.get("additionalPrinterColumns", ())) or "none"
        yield ""
        yield f"Version `{version['name']}`; columns of `kubectl get`: {columns}."
        rows = list(_fields(version["schema"]["openAPIV3Schema"]))
        if rows:
            yield from ("", "| field | type | meaning |", "|---|---|---|", *rows)


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    for part in ("spec", "status"):
        for name, field in (schema["properties"].get(part) or {}).get("properties", {}).items():
            yield _field(f"{part}.{name}", field)
            for inner, below in (field.get("properties") or {}).items():
                yield _field(f"{part}.{name}.{inner}", below)


def _field(path: str, field: dict[str, Any]) -> str:
    return f"| `{path}` | {field.get('type', 'any')} | {_cell(str(field.get('description', '')))} |"


def rights_page() -> str:
    """What each service account may do in the cluster, as the plain installation grants it."""
    documents = [one for one in yaml.safe_load_all((ROOT / "deploy/k8s/base/sublet.yaml").read_text()) if one]
    roles = {(one["kind"], one["metadata"]["name"]): one for one in documents if one["kind"] in ("Role", "ClusterRole")}
    lines = [RIGHTS_HEAD]
    bindings = [one for one in documents if one["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    for account in sorted({subject["name"] for one in bindings for subject in one.get("subjects", ())}):
        lines += [
            "",
            f"## {account}",
            "",
            "| where | group | resources | verbs | only named |",
            "|---|---|---|---|---|",
        ]
        for binding in bindings:
            if account in {subject["name"] for subject in binding.get("subjects", ())}:
                lines += _granted(binding, roles)
    return "\n".join(lines) + "\n"


def _granted(binding: dict[str, Any], roles: dict[tuple[str, str], dict[str, Any]]) -> Iterator[str]:
    where = (
        binding["metadata"].get("namespace", "whole cluster") if binding["kind"] == "RoleBinding" else "whole cluster"
    )
    ref = binding["roleRef"]
    role = roles.get((ref["kind"], ref["name"]))
    if role is None:
        yield f"| {where} | | the cluster's own role `{ref['name']}` | | |"
        return
    for rule in role["rules"]:
        groups = ", ".join(group or "core" for group in rule.get("apiGroups", ()))
        things = ", ".join(rule.get("resources") or rule.get("nonResourceURLs") or ())
        verbs, named = ", ".join(rule["verbs"]), ", ".join(rule.get("resourceNames", ()))
        yield f"| {where} | {groups} | {things} | {verbs} | {named} |"


def logs_page() -> str:
    """Every event of the log, where it is written, and its keys."""
    calls = list(log_calls(ROOT))
    lines = [LOGS_HEAD]
    for event, meaning in LOG_EVENTS.items():
        its = [call for call in calls if fnmatchcase(event, call.event)]
        levels = ", ".join(sorted({call.level for call in its}))
        where = ", ".join(sorted({call.where for call in its}))
        keys = ", ".join(f"`{key}`" for key in sorted({key for call in its for key in call.keys} - {"exc_info"}))
        lines.append(f"| `{event}` | {levels} | {where} | {keys} | {_cell(meaning)} |")
    return "\n".join(lines) + "\n"


def chart_page() -> str:
    """Every value of the chart with its default."""
    lines = [CHART_HEAD]
    for path, default, meaning in chart_values.read(ROOT):
        shown = f"`{default}`".replace("|", "\\|") if default else ""
        lines.append(f"| `{path}` | {shown} | {_cell(meaning)} |")
    return "\n".join(lines) + "\n"


PAGES = {
    "cli.md": commands_page,
    "messages.md": messages_page,
    "crds.md": kinds_page,
    "rights.md": rights_page,
    "logs.md": logs_page,
    "chart.md": chart_page,
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page())
