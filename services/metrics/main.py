"""Wiring of metrics: the host's files, the pods of the local runtime, the kernel's pressure triggers."""

from pathlib import Path

from services.metrics.alarm import PressureAlarm
from services.metrics.app import NAME, MetricsApp
from services.metrics.collector import Collector, find_sources
from services.metrics.core.figures import POOLS
from services.metrics.exposition import Exposition
from services.metrics.host import Host
from services.metrics.targets import LocalTargets
from services.metrics.tripwire import HostTripwire
from shared.adapters.cgroup import Cgroups
from shared.adapters.local_pods import LocalPods
from shared.app import App, Context, Plan
from shared.errors import Unfit


def build(context: Context) -> App:
    """The metrics service over `host_root`.

    Raises:
        Unfit: the substrate has no source of pods here.
        Unavailable: the host has no cgroups.
    """
    common = context.common
    if common.substrate not in ("host", "sim"):
        raise Unfit(f"metrics: no source of pods for substrate {common.substrate!r}; use 'host' or 'sim'")
    cgroups = Cgroups(common.host_root)
    host = Host(common.host_root, cgroups)
    return MetricsApp(
        context.wire,
        context.clock,
        context.raw,
        pods=LocalPods(common.state_dir),
        collector=Collector(host, find_sources(), LocalTargets(common.host_root), context.clock.monotonic),
        tripwire=HostTripwire(common.host_root, cgroups),
        alarm=PressureAlarm(_pressure_files(common.host_root, cgroups)),
        show=Exposition(context.clock.monotonic),
    )


def _pressure_files(host_root: Path, cgroups: Cgroups) -> list[str]:
    """The files to arm; none below another root than the kernel's own, where they are plain files."""
    if host_root != Path("/"):
        return []
    files = [f"/proc/pressure/{resource}" for resource in ("cpu", "memory")]
    if cgroups.version == 2:
        files += [
            str(cgroups.folder(pool.group) / f"{resource}.pressure") for pool in POOLS for resource in ("cpu", "memory")
        ]
    return files


PLAN = Plan(NAME, build)
