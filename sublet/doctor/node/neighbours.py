"""Checks of a node: kubelet, other agents, the bus. Pure."""

from sublet.doctor.finding import Finding, Unknown, ok, problem, unchecked, warning
from sublet.doctor.node.facts import HostFacts

AGENTS = ("koordlet", "katalyst-agent")
"""Node agents of Koordinator and of Katalyst, by the names of their programs."""
POLICY_STATIC = (
    "set node.kubeletState=true of the chart, so that agents read whom kubelet has pinned; or drain the node, set "
    "cpuManagerPolicy: none, delete /var/lib/kubelet/cpu_manager_state, restart kubelet"
)


def kubelet_driver(facts: HostFacts) -> Finding:
    """The cgroup driver: that of the configuration, and that of the groups."""
    if isinstance(facts.kubelet, Unknown):
        return unchecked(facts.kubelet, "as root, on the node itself: sublet doctor --node")
    driver, layouts = facts.kubelet.driver, facts.layouts
    if isinstance(layouts, Unknown):
        return unchecked(layouts)
    if not layouts:
        return ok(f"{driver}, by its configuration")
    found = [layout.driver for layout in layouts]
    if driver not in found:
        return warning(
            f"configured {driver}, but the groups are of {found[0]}: the runtime decides",
            f"set cgroupDriver: {found[0]} in kubelet's configuration, and in the runtime's",
        )
    return ok(driver)


def pods_groups(facts: HostFacts) -> Finding:
    """Where the pods' groups are."""
    layouts = facts.layouts
    if isinstance(layouts, Unknown):
        return unchecked(layouts)
    tops = [layout.top for layout in layouts]
    if not tops:
        if isinstance(facts.kubelet, Unknown):
            return unchecked("no kubelet on this host: nothing but `sublet up` can work here")
        return problem(
            "kubelet runs, but neither kubepods nor kubepods.slice is there",
            "leave cgroupsPerQOS on, and cgroupRoot at / or /kubelet",
        )
    if len(tops) > 1:
        return problem(
            f"groups of both drivers are there ({', '.join(tops)}): those of a former one are left over",
            "drain the node and reboot it",
        )
    return ok(f"{tops[0]} (driver {layouts[0].driver})")


def cpu_manager(facts: HostFacts) -> Finding:
    """The static CPU manager writes the cpusets of all containers anew every ten seconds.

    Facts: docs/facts/linux-cgroups.md#other-writers.
    """
    state, configured = facts.cpu_manager, facts.kubelet
    if isinstance(state, Unknown):
        if isinstance(configured, Unknown):
            return unchecked(state)
        return judged_policy(configured.cpu_manager_policy, "by kubelet's configuration")
    # Kubelet does not start with a state file of another policy, so this shows at its next restart at the latest.
    if not isinstance(configured, Unknown) and configured.cpu_manager_policy != state.policy:
        return problem(
            f"configured {configured.cpu_manager_policy}, but its state file says {state.policy}: kubelet refuses that",
            "drain the node, delete /var/lib/kubelet/cpu_manager_state, restart kubelet",
        )
    return judged_policy(state.policy, f"{state.pinned_pods} pods with CPUs of their own")


def judged_policy(policy: str, words: str) -> Finding:
    """A CPU manager policy, of a node or of one of a cluster's; pods that it has pinned Sublet leaves alone (ADR 9)."""
    if policy == "static":
        return warning(
            f"policy static, {words}: kubelet writes containers' cpusets, over those of Sublet", POLICY_STATIC
        )
    return ok(f"policy {policy or 'none'}")


def other_agents(facts: HostFacts) -> Finding:
    """Another colocation agent would write the same groups."""
    agents = facts.other_agents
    if isinstance(agents, Unknown):
        return unchecked(agents)
    if agents:
        return problem(
            f"{', '.join(agents)} runs here and writes the same groups",
            f"remove {agents[0]} from this node before Sublet comes",
        )
    return ok("no koordlet, no katalyst-agent")


def network_policy(facts: HostFacts) -> Finding:
    """Whether the cluster's network keeps out whom Sublet's NetworkPolicies keep out."""
    seen = facts.policy
    if isinstance(seen, Unknown):
        return unchecked(seen, "kubectl -n sublet-system exec POD -c agent -- python -m sublet doctor --node")
    if seen.forbidden:
        return warning(
            f"not enforced: this pod reaches {seen.host}:4222, which is not for it; any pod does, and every /metrics",
            "use a network plugin that enforces NetworkPolicy; until then the logins alone keep strangers out",
        )
    if not seen.allowed:
        return unchecked(f"{seen.host} cannot be reached at all: that says nothing about policies")
    return ok(f"enforced: of {seen.host} this pod reaches what is for it, and nothing else")


def bus(facts: HostFacts) -> Finding:
    """The NATS server that the services of this node would use."""
    seen = facts.bus
    if isinstance(seen, Unknown):
        return unchecked(seen)
    if seen.state == "reached":
        return ok(f"{seen.url} answers")
    if seen.state == "refused":
        return problem(
            f"{seen.url} does not take this login: {seen.words}",
            "set user and password in SUBLET_NATS_URL, as nats://USER:PASSWORD@HOST:4222",
        )
    if seen.agent == "here":
        return problem(
            f"an agent runs, and nothing answers at {seen.url}",
            "start the server again: the agent looks after its node meanwhile, but nobody hears of it",
        )
    if seen.agent == "elsewhere":
        return unchecked(
            f"the agent's server is in its pod, not at {seen.url} of this network",
            "ask in there: kubectl -n sublet-system exec POD -c agent -- python -m sublet doctor --node",
        )
    return unchecked(f"nothing answers at {seen.url} yet: `sublet up` and the chart bring a server of their own")
