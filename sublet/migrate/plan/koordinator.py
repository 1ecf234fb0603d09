"""`plan_koordinator` translates a cluster's Koordinator objects line by line. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from services.central.core.profiles.profile_documents import PROFILES, profile_of
from services.central.core.slo.config_map import KeyConfig, NodeStrategy, ReadSloConfig, SloConfig, read_slo_config
from services.central.core.slo.effective import effective_slo
from services.central.core.slo.keys import SLO_KEYS, SloKey
from services.central.core.slo.overlay import leaves
from services.central.core.slo.settings import FOLLOWED_KEYS, settings_of_strategy
from shared.errors import Refused
from sublet.migrate.plan.agent_arguments import arguments_of, gates_of, is_agent, pod_spec
from sublet.migrate.plan.koordinator_fields import (
    ARGUMENTS,
    FIELDS,
    FOLLOWED_GATES,
    GATE_RULES,
    GATES,
    NODE_WORDS,
    QUALITY_PARTS,
    FieldRule,
    rule_of,
)
from sublet.migrate.plan.line import MigrationPlan, PlanLine
from sublet.migrate.plan.objects import ClusterObject, part_of, words_of
from sublet.migrate.plan.valid import within_bounds

AGENT = "koordlet"
CONFIG_MAP = "slo-controller-config"
NODE_SLO_PARTS: Mapping[str, SloKey] = {
    "resourceUsedThresholdWithBE": "resource-threshold-config",
    "cpuBurstStrategy": "cpu-burst-config",
}
"""Parts of a NodeSLO that hold one key of the ConfigMap as it is on that node."""
ALLOCATABLE_GATES = {"MemoryAllocatableEvict": "memory", "CPUAllocatableEvict": "cpu"}
OFF = "enable is not true there, so nothing of this holds; not taken over"
FOLLOW = "central follows the ConfigMap; not before Koordinator's manager stops writing batch-cpu"
UNKNOWN = FieldRule(effect="nothing", note="Sublet knows no such field; look what it does there before you go on")


def plan_koordinator(objects: Sequence[ClusterObject]) -> MigrationPlan:
    """What these objects come to here; others are passed over."""
    agents = [one for one in objects if is_agent(one, AGENT)]
    flags = arguments_of(agents[0], AGENT) if agents else None
    gates = gates_of((flags or {}).get("feature-gates", ""), GATES)
    maps = [one for one in objects if one.kind == "ConfigMap" and any(key in _data(one) for key in SLO_KEYS)]
    reads = [read_slo_config(_data(one)) for one in maps]
    config = reads[0].config if reads else {}
    lines = [
        *(line for one, read in zip(maps[:1], reads, strict=False) for line in _config_lines(one, read, gates)),
        *(line for one in maps[1:] for line in _second(one, maps[0])),
        *_agent_lines(agents, flags, gates, active=_active(config)),
        *(line for one in objects if one.kind == PROFILES.kind for line in _profile_lines(one)),
        *(line for one in objects if one.kind == "Node" for line in _node_lines(one)),
        *_node_slo_lines(objects, config),
    ]
    return within_bounds(MigrationPlan("koordinator", tuple(lines)))


def _data(config_map: ClusterObject) -> dict[str, str]:
    return words_of(config_map.document, "data")


def _active(config: SloConfig) -> bool:
    """Whether suppression and eviction are on in the cluster's strategy."""
    return bool(effective_slo(config, {})["resource-threshold-config"].strategy.get("enable"))


def _config_lines(one: ClusterObject, read: ReadSloConfig, gates: Mapping[str, bool]) -> Iterator[PlanLine]:
    place = (("data", None, "enabled", True), ("metadata.namespace", one.namespace, "namespace", one.namespace),
             ("metadata.name", one.name, "name", one.name))  # fmt: skip
    for field, given, key, setting in place:
        if setting:
            yield PlanLine(one.title, field, given, "later", f"slo.{key}", setting, FOLLOW)
    for key, found in read.config.items():
        yield from _key_lines(one.title, key, found, gates)
    for problem in read.problems:
        yield PlanLine(one.title, problem.key, None, "wrong", note=problem.said.lstrip(": "))
    for unknown in read.unknown:
        name, _, said = unknown.partition(":")
        if not _known(name):
            yield PlanLine(one.title, name, None, "nothing", note=said.strip() or "nobody reads it there")


def _known(path: str) -> bool:
    """Whether a field that the reader of the ConfigMap does not know has a place here all the same."""
    key, _, field = path.replace("'", "").partition(".")
    return any(name == key and rule_of(rules, field.rpartition(".")[2]) for name, rules in FIELDS.items())


def _key_lines(source: str, key: SloKey, found: KeyConfig, gates: Mapping[str, bool]) -> Iterator[PlanLine]:
    if key == "resource-qos-config":
        yield from _quality_lines(source, found, gates)
        return
    off = effective_slo({key: found}, {})[key].strategy.get("enable") is False
    mapped = settings_of_strategy(key, found.cluster)
    settings = {f"settings.{path}": value for path, value in leaves(mapped.settings)}
    refused = {said.partition(" = ")[0]: said.partition(" = ")[2] for said in mapped.unfollowed}
    for path, value in leaves(found.cluster):
        rule = rule_of(FIELDS[key], path) or UNKNOWN
        line = PlanLine(source, f"{key}.{path}", value, rule.effect)
        followed = any(settings.get(name) for name in (rule.key, rule.also))
        why_off = _why_off(rule, gates, off=off, followed=followed)
        if line.given_key in refused and rule.key and not why_off:
            yield replace(line, effect="wrong", note=refused[line.given_key])
            continue
        for name in (rule.key, rule.also) if rule.also else (rule.key,):
            convert = _always(settings[name]) if name in settings else rule.convert
            yield _line(line, replace(rule, key=name, convert=convert), why_off)
    for strategy in found.nodes:
        yield from _strategy_lines(source, key, strategy)


def _quality_lines(source: str, found: KeyConfig, gates: Mapping[str, bool]) -> Iterator[PlanLine]:
    """What is said by class becomes one setting of all classes, with what is built in there."""
    key: SloKey = "resource-qos-config"
    mapped = settings_of_strategy(key, found.cluster)
    settings = {f"settings.{path}": value for path, value in leaves(mapped.settings)}
    for path, value in leaves(found.cluster):
        part = path.split(".")[1] if "." in path else ""
        prefix, gate = QUALITY_PARTS.get(part, ("none", ""))
        line = PlanLine(source, f"{key}.{path}", value, "kept", note=f"in the lines of {prefix.rstrip('.')} below")
        if gate and not gates[gate]:
            line = replace(line, effect="off", note=_gate_off(gate, followed=bool(settings.get(f"{prefix}enabled"))))
        elif not any(name.startswith(prefix) for name in settings):
            line = replace(line, effect="nothing", note=(rule_of(FIELDS[key], part) or UNKNOWN).note)
        yield line
    taken = tuple(prefix for prefix, gate in QUALITY_PARTS.values() if not gate or gates[gate])
    for name, setting in settings.items():
        if name.startswith(taken):
            yield PlanLine(source, f"{key}[{name.removeprefix('settings.')}]", None, "maps", name, setting)
    for strategy in found.nodes:
        yield from _strategy_lines(source, key, strategy)


def _always(setting: Any) -> Callable[[Any], Any]:
    return lambda _: setting


def _why_off(rule: FieldRule, gates: Mapping[str, bool], *, off: bool, followed: bool = False) -> str:
    if off:
        return OFF
    return _gate_off(rule.gate, followed=followed) if rule.gate and not gates[rule.gate] else ""


def _gate_off(gate: str, *, followed: bool) -> str:
    """That a gate is off, and what central does all the same where the ConfigMap, which it follows, says on."""
    said = f"the feature gate {gate} of koordlet is off"
    if not followed or gate not in FOLLOWED_GATES:
        return said
    return f"{said}; slo.enabled switches this on: take `{FOLLOWED_GATES[gate]}` out of the ConfigMap first"


def _line(line: PlanLine, rule: FieldRule, why_off: str = "") -> PlanLine:
    """The line as its rule has it."""
    source, field, value = line.source, line.given_key, line.given
    if why_off and rule.effect in ("maps", "later"):
        return PlanLine(source, field, value, "off", note=why_off)
    if not rule.key:
        return PlanLine(source, field, value, rule.effect, note=rule.note)
    try:
        setting = rule.convert(value)
    except (TypeError, ValueError, LookupError, Refused):
        note = f"no value that {rule.key.removeprefix('settings.')} could be; correct it there"
        return PlanLine(source, field, value, "wrong", note=note)
    return PlanLine(source, field, value, rule.effect, rule.key, setting, rule.note)


def _strategy_lines(source: str, key: SloKey, strategy: NodeStrategy) -> Iterator[PlanLine]:
    labels = ", ".join(sorted(strategy.selector.keys))
    followed = key in FOLLOWED_KEYS
    who = "central does so once slo.enabled is set" if followed else "nobody does so here; do without"
    note = f"for nodes by their label {labels} alone: {who}"
    for path, value in leaves(strategy.strategy):
        yield PlanLine(source, f"{key}.{path}[{strategy.name}]", value, "kept" if followed else "nothing", note=note)


def _second(one: ClusterObject, first: ClusterObject) -> Iterator[PlanLine]:
    place = f"{first.namespace}/{first.name}" if first.namespace else first.name
    note = f"a second ConfigMap of this kind; {place} was read, leave out the one that is not in force"
    yield PlanLine(one.title, "data", None, "wrong", note=note)


def _agent_lines(
    agents: Sequence[ClusterObject], flags: Mapping[str, str] | None, gates: Mapping[str, bool], *, active: bool
) -> Iterator[PlanLine]:
    if flags is None:
        yield PlanLine("DaemonSet/koordlet", "feature-gates", None, "nothing",
                       note="not among what was read, so its default gates are assumed; name it with -f")  # fmt: skip
        return
    source = agents[0].title
    for gate, on in sorted(gates.items()):
        rule = GATE_RULES[gate]
        if on:
            yield _gate_line(source, gate, rule, active=active)
    yield from _resources_line(source, gates, active=active)
    for name, value in flags.items():
        if (found := ARGUMENTS.get(name)) is not None:
            yield _line(PlanLine(source, name, value, found.effect), found, _why_off(found, gates, off=not active))
    selector = words_of(pod_spec(agents[0]), "nodeSelector")
    if selector:
        yield PlanLine(source, "nodeSelector", selector, "maps", "node.nodeSelector", selector)


def _gate_line(source: str, gate: str, rule: FieldRule, *, active: bool) -> PlanLine:
    line = PlanLine(source, f"feature-gates.{gate}", True, rule.effect)
    return _line(line, replace(rule, convert=_always(True)), "" if active else OFF)


def _resources_line(source: str, gates: Mapping[str, bool], *, active: bool) -> Iterator[PlanLine]:
    """Of which resources what is allocatable is watched; both gates switch one plugin on."""
    resources = [name for gate, name in ALLOCATABLE_GATES.items() if gates[gate]]
    if resources and active:
        key = "settings.evictor.plugins.reclaimed_allocatable.resources"
        yield PlanLine(source, "feature-gates", list(resources), "maps", key, resources)


def _profile_lines(one: ClusterObject) -> Iterator[PlanLine]:
    seen = profile_of(one.document)
    if seen.profile is None:
        yield PlanLine(one.title, "spec", None, "wrong", note=f"{seen.problem}; it would change no pod here")
        return
    yield PlanLine(one.title, "spec", None, "later", "profiles.enabled", True,
                   "read as it is; set it when Koordinator's webhook no longer changes pods")  # fmt: skip


def _node_lines(one: ClusterObject) -> Iterator[PlanLine]:
    for part in ("annotations", "labels"):
        for name, value in sorted(words_of(one.document, "metadata", part).items()):
            rule = rule_of(NODE_WORDS, name)
            if rule is not None:
                yield _line(PlanLine(one.title, name, value, rule.effect), rule)


def _node_slo_lines(objects: Sequence[ClusterObject], config: SloConfig) -> Iterator[PlanLine]:
    labels = {one.name: words_of(one.document, "metadata", "labels") for one in objects if one.kind == "Node"}
    for one in objects:
        if one.kind != "NodeSLO":
            continue
        expected = effective_slo(config, labels.get(one.name, {}))
        others = [path for part, key in NODE_SLO_PARTS.items()
                  for path in _differences(one, part, expected[key].strategy)]  # fmt: skip
        if not others:
            yield PlanLine(one.title, "spec", None, "kept", note="says what the ConfigMap says; nothing to do")
        for path, value, wanted in others:
            yield PlanLine(one.title, path, value, "nothing",
                           note=f"the ConfigMap comes to {wanted!r} there: somebody wrote the NodeSLO, or the node's "
                                "labels were not read; the plan follows the ConfigMap")  # fmt: skip


def _differences(one: ClusterObject, part: str, expected: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    wanted = dict(leaves(expected))
    for path, value in leaves(part_of(one.document, "spec", part)):
        if path in wanted and wanted[path] != value:
            yield f"spec.{part}.{path}", value, wanted[path]
