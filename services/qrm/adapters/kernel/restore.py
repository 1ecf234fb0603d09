"""Restoring undoes what qrm wrote, once Sublet is uninstalled or the node only observes.

Groups of Sublet's own end with what runs in them, but stay where the node only observes. Kubelet's stay as long as
their pods, and with them what was written.

Rule: docs/facts/safety-rules.md#rule-10-stopping-is-safe.
"""

from collections.abc import Collection, Iterator, Sequence

from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.isolation.wanted import Key, in_order
from services.qrm.core.writes.classes import RECLAIMED
from services.qrm.core.writes.kubelet_defaults import default_limits, restore_group, restore_weight
from services.qrm.core.writes.outcome import Problem
from services.qrm.core.writes.plan import Sets, WantedSets
from services.qrm.former_values import FormerValues
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob, Write
from shared.core.cgroups.layout import Layout
from shared.core.pods.limits import is_limited_here

DEFAULT_SHARES = 1024
"""The kernel's own weight of a group."""


def give_back(writer: CgroupWriter, former: FormerValues, keys: Collection[Key]) -> list[Problem]:
    """Restore former values of groups if Sublet wrote the current ones; return what could not be written."""
    on_record = former.of({knob for _, knob in keys})
    changes = {}
    for group, knob in keys:
        one, now = on_record[group, knob], writer.cgroups.read(group, knob)
        ours = not one.wrote or not all(writer.differs(Write(group, knob, value)) for value in one.wrote)
        if now is not None and ours:
            changes[group, knob] = (int(now), one.value)
    problems = writer.settle(Write(*key, changes[key][1]) for key in in_order(changes))
    if not problems:
        try:
            former.forget(keys)
        except OSError as error:
            return [Problem(writer.top, f"what was given back stays on record ({error}): it is given back again")]
    return problems


def restore_groups(
    writer: CgroupWriter, layout: Layout, machine: HostMachine, pods: Sequence[Pod]
) -> tuple[Problem, ...]:
    """Restore the groups of either layout; what could not be written."""
    if not layout.classes:
        return restore_kubelet_groups(writer, layout, machine, pods)
    groups = [group for group in layout.classes.values() if writer.cgroups.exists(group)]
    below = [layout.pod_group(pod) for pod in pods if writer.cgroups.exists(layout.pod_group(pod))]
    whole = Sets(machine.usable, machine.mems)
    outcome = writer.apply(dict.fromkeys((*groups, *below), WantedSets(whole)), needed=())
    return (*outcome.problems, *writer.settle(_class_settings(layout.classes[RECLAIMED], groups)))


def _class_settings(reclaimed: str, groups: Sequence[str]) -> Iterator[Write]:
    for group in groups:
        yield from restore_weight(group, DEFAULT_SHARES)
    for knob in (Knob.CPU_QUOTA, Knob.MEMORY_MAX, Knob.MEMORY_HIGH):
        yield Write(reclaimed, knob, UNLIMITED)


def restore_kubelet_groups(
    writer: CgroupWriter, layout: Layout, machine: HostMachine, pods: Sequence[Pod]
) -> tuple[Problem, ...]:
    """Give every pod every CPU and memory node, then kubelet's weights and limits; return what could not be written.

    Pods with CPUs from kubelet's CPU manager are left alone, and so are those CPUs. A pod that has ended meanwhile is
    no problem.
    """
    # Kubelet's static CPU manager writes the sets of pinned pods itself (docs/facts/linux-cgroups.md#other-writers).
    there = [pod for pod in pods if pod.uid not in machine.pinned_pods and writer.cgroups.exists(layout.pod_group(pod))]
    # Kubelet gives a pod without pins every CPU except those that it has assigned.
    whole = Sets(machine.topology.all - machine.pinned, machine.mems)
    outcome = writer.apply({layout.pod_group(pod): WantedSets(whole) for pod in there}, needed=())
    # The sets first: should this be cut short, pods that may run everywhere are worth more than weights that are right.
    return (*outcome.problems, *writer.settle(_settings(writer, layout, there)))


def _settings(writer: CgroupWriter, layout: Layout, pods: Sequence[Pod]) -> Iterator[Write]:
    best_effort = layout.reclaimed_group(())
    if best_effort is not None:
        # The class's limits, which qrm writes to this group if it contains only reclaimed pods.
        for knob in (Knob.CPU_QUOTA, Knob.MEMORY_MAX, Knob.MEMORY_HIGH):
            yield Write(best_effort, knob, UNLIMITED)
    # Of what kubelet knows qrm writes only what is on record.
    for pod in pods:
        if is_limited_here(pod):
            for group, own in default_limits(pod, layout).items():
                hard = writer.cgroups.read(group, Knob.MEMORY_MAX)
                yield from restore_group(group, own, None if hard is None else int(hard))
