"""Central over a given bus, without a process and mostly without a configuration file."""

from collections.abc import Mapping
from typing import Any

from services.central.adapters.streams import FactStreams
from services.central.app import CentralApp
from services.central.ports.app import CentralPorts, ClusterSide, ConfigText
from services.central.settings import NAME, CentralSettings
from shared.app import Context
from shared.ports import Clock
from shared.settings import CommonSettings, section
from shared.wire import Wire


class NoText:
    """Nobody has written a configuration."""

    name = "config.yaml"

    def changed(self) -> str | None:
        return None


def central_on(
    wire: Wire,
    clock: Clock,
    raw: Mapping[str, Any],
    *,
    text: ConfigText | None = None,
    cluster: ClusterSide | None = None,
) -> CentralApp:
    """The app as `main` builds it, over these parts."""
    context = Context(wire, clock, CommonSettings(node=wire.node), raw)
    ports = CentralPorts(text or NoText(), FactStreams(wire.bus, clock), cluster)
    return CentralApp(context, ports, section(CentralSettings, raw, NAME))
