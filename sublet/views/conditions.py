"""Conditions of a node for operators, from metrics, qrm, evictor, reporter and central, each listed once."""

from sublet.views.facts import NodeFacts


def conditions(facts: NodeFacts) -> list[tuple[str, str]]:
    """Type and message of each condition."""
    found = [(c.type, c.message) for c in (facts.allocation.conditions if facts.allocation else ())]
    found += [(str(c.get("type")), str(c.get("message"))) for c in facts.answered("evictor", "conditions", [])]
    if facts.sample is not None and (unmeasured := facts.sample.unmeasured_applications):
        found.append(("HostApplicationUnmeasured", unmeasured))
    if facts.sample is not None and facts.sample.counters_unmeasured:
        found.append(("CountersUnmeasured", facts.sample.counters_unmeasured))
    if (told := facts.answered("advisor", "service_profiles", None)) and told["stale"]:
        found.append(("ServiceProfilesStale", told["stale"].removeprefix("ServiceProfilesStale: ")))
    if failure := facts.answered("reporter", "write_failure", ""):
        found.append(("NodeObjectNotWritten", failure))
    if refused := facts.answered("central", "config", {}).get("refused"):
        found.append(("ConfigRefused", refused))
    for health in facts.healths:
        if (no := health.config_refused) is not None:
            kept = f"revision {health.config_revision}" if health.config_revision else "what its settings say"
            words = f"{health.service} refuses revision {no.revision}, {kept} stays in force: {no.why}"
            found.append(("ConfigRefused", words))
    return list(dict.fromkeys(found))
