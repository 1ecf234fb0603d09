"""Wiring of the reporter: where there is no API server, the node's object is a file."""

from services.reporter.app import ReporterApp
from shared.adapters.node_file import NodeFile
from shared.app import App, Context, Plan


def build(context: Context) -> App:
    """The reporter over `<state_dir>/cnr.json`."""
    writer = NodeFile(context.common.state_dir / "cnr.json")
    return ReporterApp(context.wire, context.clock, writer, context.raw)


PLAN = Plan("reporter", build)
