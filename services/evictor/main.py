"""Wiring of the evictor: its ledger in the state folder, and who evicts on this substrate."""

from services.evictor.app import EvictorApp
from services.evictor.settings import SECTION
from shared.adapters.cgroup import Cgroups
from shared.adapters.ledger import SqliteLedger
from shared.adapters.local_evictor import LocalEvictor, SimEvictor
from shared.adapters.pause_file import PauseFile
from shared.app import App, Context, Plan
from shared.errors import Unfit
from shared.ports import EvictionActuator


def build(context: Context) -> App:
    """The evictor over this substrate's actuator.

    Raises:
        BadConfig: its section cannot be used.
        Unfit: nobody can evict on this substrate.
    """
    ledger, brake = SqliteLedger(context.common.state_dir), PauseFile(context.common.state_dir)
    return EvictorApp(context.wire, ledger, _actuator(context), context.raw.get(SECTION) or {}, brake.why)


def _actuator(context: Context) -> EvictionActuator:
    common = context.common
    match common.substrate:
        case "host":
            return LocalEvictor(common.state_dir, Cgroups(common.host_root), context.clock)
        case "sim":
            return SimEvictor(common.state_dir)
        case other:
            raise Unfit(f"evictor: nobody evicts on substrate {other!r}; want host or sim", reason="substrate")


PLAN = Plan(SECTION, build)
