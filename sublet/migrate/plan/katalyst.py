"""`plan_katalyst` translates a cluster's Katalyst objects line by line. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.central.core.katalyst.fields import FIELDS, Line
from services.central.core.katalyst.settings import settings_of
from shared.core.api_kind import ADMIN_QOS_CONFIGS, CONFIG_GROUP, EVICTION_CONFIGS, KCCS
from shared.errors import Refused
from sublet.migrate.labels import AGENT_LABEL, HERE
from sublet.migrate.plan.agent_arguments import arguments_of, is_agent, pod_spec
from sublet.migrate.plan.katalyst_flags import COLOCATION_FLAGS, FLAG_FIELDS, LIST_FLAGS
from sublet.migrate.plan.line import MigrationPlan, PlanLine
from sublet.migrate.plan.objects import ClusterObject, part_of, words_of
from sublet.migrate.plan.valid import within_bounds

AGENT, CONTROLLER, SCHEDULER = "katalyst-agent", "katalyst-controller", "katalyst-scheduler"
FOLLOWED = {kind.kind: kind.plural for kind in (ADMIN_QOS_CONFIGS, EVICTION_CONFIGS)}
"""Kinds of config objects that central hands to the nodes."""
MAX_LEVELS = 16


def plan_katalyst(objects: Sequence[ClusterObject]) -> MigrationPlan:
    """What these objects come to here; others are passed over."""
    lines: list[PlanLine] = []
    for one in objects:
        if one.kind == KCCS.kind:
            lines.append(_kind_line(one))
        elif str(one.document.get("apiVersion", "")).startswith(f"{CONFIG_GROUP}/") and "config" in _spec(one):
            lines += _config_lines(one)
        elif is_agent(one, AGENT):
            lines += _agent_lines(one)
        elif one.kind == "Deployment":
            lines += _deployment_lines(one)
    return within_bounds(MigrationPlan("katalyst", tuple(lines)))


def _spec(one: ClusterObject) -> Mapping[str, Any]:
    return part_of(one.document, "spec")


def _kind_line(one: ClusterObject) -> PlanLine:
    resource = words_of(_spec(one), "targetType").get("resource", "")
    if resource in FOLLOWED.values():
        return PlanLine(one.title, "spec.targetType", resource, "kept", note="followed by central as it is")
    return PlanLine(one.title, "spec.targetType", resource, "nothing",
                    note=f"no such kind here; {' and '.join(FOLLOWED.values())} are followed")  # fmt: skip


def _config_lines(one: ClusterObject) -> Iterator[PlanLine]:
    for path, value in _leaves(_spec(one).get("config")):
        yield _config_line(one, path, value)


def _leaves(config: object, path: str = "", levels: int = MAX_LEVELS) -> Iterator[tuple[str, Any]]:
    """Fields with their values; a mapping that is itself a field's value is not entered."""
    if not isinstance(config, Mapping):
        return
    for key, value in config.items():
        here = f"{path}{key}"
        if isinstance(value, Mapping) and here not in FIELDS and levels:
            yield from _leaves(value, f"{here}.", levels - 1)
        elif value is not None:
            yield here, value


def _config_line(one: ClusterObject, path: str, value: Any) -> PlanLine:
    field = f"spec.config.{path}"
    if one.kind not in FOLLOWED:
        return PlanLine(one.title, field, value, "nothing", note=f"objects of the kind {one.kind} are not read here")
    try:
        mapped = settings_of(_document(path, value))
    except Refused as refusal:
        said = str(refusal).removeprefix(f"{field} ")
        return PlanLine(one.title, field, value, "wrong", note=f"{said}; correct it, else the object is refused here")
    if mapped.ignored:
        return PlanLine(one.title, field, value, "nothing", note="Sublet has no such setting; it is named as ignored")
    return PlanLine(one.title, field, value, "kept", note=f"followed by central: {_places(path)}")


def _places(path: str) -> str:
    found = FIELDS.get(path)
    if found is None:
        return "as it is"
    places = (found.amount, found.ratio) if isinstance(found, Line) else found.to
    return ", ".join(".".join(place) for place in places)


def _document(path: str, value: Any) -> dict[str, Any]:
    document: dict[str, Any] = {}
    *above, last = path.split(".")
    here = document
    for name in above:
        here = here.setdefault(name, {})
    here[last] = value
    return document


def _agent_lines(one: ClusterObject) -> Iterator[PlanLine]:
    for flag, text in arguments_of(one, AGENT).items():
        if (path := FLAG_FIELDS.get(flag)) is not None:
            yield from _flag_lines(one, flag, text, path)
        elif flag.startswith(COLOCATION_FLAGS):
            yield PlanLine(one.title, flag, text, "nothing", note="Sublet has no such setting; look what it is for")
    given = words_of(pod_spec(one), "nodeSelector")
    note = "both agents write the CustomNodeResource and the Node's reclaimed resources: ours runs on nodes taken over"
    yield PlanLine(one.title, "nodeSelector", given, "maps", "node.nodeSelector", {**given, AGENT_LABEL: HERE}, note)


def _flag_lines(one: ClusterObject, flag: str, text: str, path: str) -> Iterator[PlanLine]:
    value = text.split(",") if flag in LIST_FLAGS else _value(text)
    try:
        mapped = settings_of(_document(path, value))
    except Refused as refusal:
        said = str(refusal).partition(": ")[2] or str(refusal)
        yield PlanLine(one.title, flag, text, "wrong", note=f"{said}; choose another value")
        return
    for place, setting in _leaves(mapped.settings):
        yield PlanLine(one.title, flag, text, "maps", f"settings.{place}", setting)
    for name in mapped.ignored:
        yield PlanLine(one.title, flag, text, "nothing", note=f"{name}: Sublet has no such setting")


def _value(text: str) -> Any:
    """A flag's text as a config object would say it."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _deployment_lines(one: ClusterObject) -> Iterator[PlanLine]:
    if SCHEDULER in one.name:
        yield PlanLine(one.title, "metadata.name", one.name, "maps", "scheduler.enabled", False,
                       "a scheduler of that name is there already")  # fmt: skip
    if CONTROLLER in one.name:
        note = "writes CustomNodeConfigs as central does: scale it to 0 before central starts"
        yield PlanLine(one.title, "metadata.name", one.name, "nothing", note=note)
