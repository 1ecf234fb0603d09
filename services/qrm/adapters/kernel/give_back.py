"""A node that Sublet leaves for good: kubelet's groups as kubelet would have made them.

Groups of Sublet's own go with what runs in them; kubelet's stay with their pods, and so would what was written there.

Rule: docs/facts/safety-rules.md#rule-10-stopping-is-safe.
"""

from collections.abc import Iterator, Sequence

from services.qrm.adapters.kernel.machine import Machine
from services.qrm.adapters.kernel.writer import Problem, Writer
from services.qrm.core.writes.classes import RECLAIMED
from services.qrm.core.writes.giving_back import giving_back, kubelets_limits
from services.qrm.core.writes.plan import Sets, Want
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob, Write
from shared.core.cgroups.layout import Layout


def give_back(writer: Writer, layout: Layout, machine: Machine, pods: Sequence[Pod]) -> tuple[Problem, ...]:
    """Every CPU and memory node to every pod, then weights and limits; what could not be written.

    Pods to which kubelet's CPU manager has given CPUs of their own are left alone, and those CPUs to them. A pod that
    is gone meanwhile is no problem.
    """
    there = [pod for pod in pods if pod.uid not in machine.pinned_pods and writer.cgroups.exists(layout.pod_group(pod))]
    all_of_it = Sets(machine.topology.all - machine.pinned, machine.mems)
    outcome = writer.apply({layout.pod_group(pod): Want(all_of_it) for pod in there}, needed=())
    return (*outcome.problems, *writer.settle(_settings(writer, layout, there)))


def _settings(writer: Writer, layout: Layout, pods: Sequence[Pod]) -> Iterator[Write]:
    best_effort = layout.reclaimed_group(())
    if best_effort is not None:
        for knob in (Knob.CPU_QUOTA, Knob.MEMORY_MAX, Knob.MEMORY_HIGH):
            yield Write(best_effort, knob, UNLIMITED)
    for pod in pods:
        if pod.qos == RECLAIMED:
            for group, own in kubelets_limits(pod, layout).items():
                hard = writer.cgroups.read(group, Knob.MEMORY_MAX)
                yield from giving_back(group, own, None if hard is None else int(hard))
        else:
            for container in pod.containers:
                if container.cpu_limit_millis and (burst := layout.container_group(pod, container)) is not None:
                    yield Write(burst, Knob.CPU_BURST, 0)
