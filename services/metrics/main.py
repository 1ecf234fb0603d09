"""Build metrics: over the host's files, this substrate's pods and cgroups, and the kernel's pressure triggers."""

from pathlib import Path

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.exposition import Exposition
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.perf_stat import PerfStat
from services.metrics.adapters.pressure_triggers import PressureTriggers, pressure_files
from services.metrics.adapters.targets import LayoutTargets
from services.metrics.adapters.tripwire import HostTripwire
from services.metrics.app import MetricsApp
from services.metrics.core.counters import NO_MACHINE, NO_V2
from services.metrics.core.figures.target import TENANTS
from services.metrics.core.reads.pooled import pool_of_members
from services.metrics.ports import MetricsPorts
from services.metrics.registry import known_sources
from services.metrics.settings import NAME, MetricsSettings
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.kubelet_tree import find_layout
from shared.adapters.pod_sources import pod_source
from shared.app import App, Context, Plan
from shared.core.cgroups.layout import SHARE, Layout, OwnLayout
from shared.settings import section


def build(context: Context) -> App:
    """Build the metrics service for `host_root`.

    Raises:
        BadConfig: its section cannot be used.
        Unavailable: the host has no cgroups, or kubelet's cgroups are missing on a Kubernetes node.
    """
    common = context.common
    cgroups = Cgroups(common.host_root)
    layout: Layout = find_layout(cgroups) if common.substrate == "kubernetes" else OwnLayout()
    targets = LayoutTargets(common.host_root, layout)
    settings = section(MetricsSettings, context.raw, NAME)
    perf = None
    if settings.perf.enabled:
        lacking = NO_MACHINE if common.substrate == "sim" else NO_V2 if cgroups.version == 1 else ""
        perf = PerfStat(settings.perf, lacking, context.clock.monotonic)
    host = HostReader(common.host_root, cgroups, counters=perf)
    sources = known_sources(counters=perf is not None)
    ports = MetricsPorts(
        pods=pod_source(common),
        collector=Collector(host, sources, targets, context.clock.monotonic),
        # Where each class has a group, tenants are one file: a look at all pods before it would save nothing.
        tripwire=HostTripwire(common.host_root, cgroups, targets.tenants, "" if layout.classes else layout.top),
        alarm=PressureTriggers(pressure_files(common.host_root, _homes(cgroups, layout))),
        show=Exposition(context.clock.monotonic),
        tenants=TENANTS if layout.classes else pool_of_members(SHARE),
        layout=layout,
    )
    return MetricsApp(context, ports, settings)


def _homes(cgroups: Cgroups, layout: Layout) -> list[Path]:
    """The groups that have pressure files."""
    return [cgroups.folder(group) for group in layout.homes] if cgroups.version == 2 else []


PLAN = Plan(NAME, build)
