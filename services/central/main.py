"""Wiring of central: the configuration of all nodes comes from a file."""

from services.central.app import NAME, CentralApp
from services.central.settings import CentralSettings
from services.central.watched_file import WatchedFile
from shared.app import App, Context, Plan
from shared.settings import section


def build(context: Context) -> App:
    """Central over `config_file`, by default `<state_dir>/config.yaml`."""
    path = section(CentralSettings, context.raw, NAME).config_file or context.common.state_dir / "config.yaml"
    return CentralApp(context.wire, context.clock, WatchedFile(path), str(path), context.raw)


PLAN = Plan("central", build)
