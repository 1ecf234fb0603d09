"""The simulated machine as a process: `python -m sublet.sim.live FOLDER STATE_DIR [SCENARIO [SPEED]]`.

It keeps the machine's tree in the folder alive in real time, runs the pods of the state folder's store on it, and plays
the scenario, if given. After a kill and a restart it continues where it was.
"""

import asyncio
import signal
import sys
import uuid
from pathlib import Path

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.errors import SubletError
from shared.settings import common_settings, raw_settings
from sublet.sim.host import SimHost
from sublet.sim.live.loop import live
from sublet.sim.live.story import Story
from sublet.sim.machine import SimMachine
from sublet.sim.progress import NAME
from sublet.sim.scenario import load_scenario


async def _main(folder: Path, state_dir: Path, name: str | None, speed: float) -> None:
    common = common_settings(raw_settings())
    telemetry.setup_logging("sim", common.node, as_json=common.log_json, level=common.log_level)
    scenario = load_scenario(name) if name is not None else None
    machine = scenario.machine if scenario is not None else SimMachine()
    # A UID is used once, also over restarts and among hosts: what was decided on one stands in ledgers and streams.
    host = SimHost.create(folder, machine, state_dir, uuid.uuid4())
    host.speed = speed
    story = Story(scenario) if scenario is not None else None
    living = asyncio.create_task(live(host, SystemClock(), state_dir / NAME, story))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ended = asyncio.ensure_future(stop.wait())
    await asyncio.wait({ended, living}, return_when=asyncio.FIRST_COMPLETED)
    living.cancel()
    if not stop.is_set():
        await living


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 5:
        sys.exit("usage: python -m sublet.sim.live FOLDER STATE_DIR [SCENARIO [SPEED]]")
    _folder, _state_dir, *_more = sys.argv[1:]
    try:
        _speed = float(_more[1]) if len(_more) > 1 else 1.0
        asyncio.run(_main(Path(_folder), Path(_state_dir), _more[0] if _more else None, _speed))
    except SubletError as error:
        sys.exit(f"sublet sim: {error}")
