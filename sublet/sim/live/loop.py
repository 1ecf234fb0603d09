"""`live` keeps a simulated host alive in real time, and records its progress in a file for the next run."""

from pathlib import Path

import structlog

from shared.errors import Unavailable
from shared.ports import Clock
from sublet.sim.host import SimHost
from sublet.sim.live.story import Story
from sublet.sim.progress import SimProgress, read_progress, write_progress

log = structlog.get_logger()

PERIOD_S = 0.1
"""How often the machine moves on. Rates over less than some ten of these show the steps, not the load."""
KEEP_S = 1.0
"""How often the time is kept, of which a kill loses as much."""


class KeptProgress:
    """Writes a host's progress into its file: every step and every pod at once, the time now and then."""

    def __init__(self, file: Path) -> None:
        self._file, self._kept, self._at_s = file, SimProgress(), float("-inf")
        self._trouble = ""

    def save(self, progress: SimProgress, now_s: float) -> None:
        """Write what has changed since it was written last."""
        same = progress.model_copy(update={"time_s": self._kept.time_s}) == self._kept
        if same and now_s - self._at_s < KEEP_S:
            return
        try:
            write_progress(self._file, progress)
        except Unavailable as error:  # a full disk: the machine goes on, only a restart would know less
            if str(error) != self._trouble:
                log.warning("progress.not_kept", why=str(error))
            self._trouble = str(error)
            return
        self._kept, self._at_s, self._trouble = progress, now_s, ""


async def live(host: SimHost, clock: Clock, file: Path, story: Story | None = None) -> None:
    """Keep a host alive for ever, from the progress that stands in the file."""
    host.progress, kept = read_progress(file), KeptProgress(file)
    if story is not None:
        story.take_up(host)
    while True:
        now_s = clock.monotonic()
        host.step(now_s)
        if story is not None:
            story.perform_due(host)
        kept.save(host.progress, now_s)
        await clock.sleep(PERIOD_S)
