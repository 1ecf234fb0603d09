"""The arguments of another system's agent, as its DaemonSet gives them.

Facts: docs/facts/other-agents.md#arguments.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from sublet.migrate.plan.objects import ClusterObject, part_of, rows_of

MAX_WORDS = 2000
MAX_WORD = 4096
"""Characters of one argument that are read."""


def is_agent(daemon_set: ClusterObject, program: str) -> bool:
    """Whether a DaemonSet runs this program: by its name, or those of its containers and images."""
    containers = rows_of(pod_spec(daemon_set), "containers")
    images = [str(one.get("image")).rpartition("/")[2] for one in containers]
    names = [daemon_set.name, *(str(one.get("name")) for one in containers), *images]
    return daemon_set.kind == "DaemonSet" and any(program in name for name in names)


def pod_spec(daemon_set: ClusterObject) -> Mapping[str, Any]:
    """The pods' spec of a DaemonSet; empty where it has none."""
    return part_of(daemon_set.document, "spec", "template", "spec")


def arguments_of(daemon_set: ClusterObject, program: str) -> dict[str, str]:
    """Its agent's flags by name, without dashes: the last one of a name; "true" for one without a value."""
    containers = rows_of(pod_spec(daemon_set), "containers")
    named = [one for one in containers if program in f"{one.get('name')} {one.get('image')}"]
    return dict(_flags([word for one in named or containers[:1] for word in _words(one)]))


def _words(container: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for part in ("command", "args"):
        given = container.get(part)
        found += [word[:MAX_WORD] for word in given if isinstance(word, str)] if isinstance(given, list) else []
    return found[:MAX_WORDS]


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    for word, following in pairwise([*words, ""]):
        if not word.startswith("-") or not word.strip("-"):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            value = "true" if not following or following.startswith("-") else following
        yield name, value


def gates_of(text: str, defaults: Mapping[str, tuple[bool, str]]) -> dict[str, bool]:
    """Feature gates ("A=true,B=false") over their defaults, each with its stage (Alpha, Beta).

    AllAlpha and AllBeta stand for all gates of that stage that are not named.
    """
    said = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if equals and value.strip().lower() in ("true", "false"):
            said[name] = value.strip().lower() == "true"
    of_stage = {stage: said.get(f"All{stage}") for _, stage in defaults.values()}
    return {
        name: said.get(name, default if of_stage[stage] is None else bool(of_stage[stage]))
        for name, (default, stage) in defaults.items()
    }
