"""Pods on the simulated machine: their load is checked before they start, and a command waits for their end."""

import signal
import time
from collections.abc import Callable, Sequence

from shared.adapters.local.runtime import DELETED, Runtime
from shared.core.pods.exit_codes import SIGNALLED
from shared.core.pods.manifest import PodRecord
from shared.errors import Refused
from sublet.load.demand import LOAD, MEMORY_LOAD, loads_of, read_cores, read_memory

_POLL_S = 0.1


def load_annotations(runtime: Runtime, load: str, memory_load: str) -> dict[str, str]:
    """The annotations of the options `--load` and `--memory-load`; none where neither is given.

    Raises:
        Refused: an option cannot be read, or this Sublet is on no simulated machine.
    """
    for option, text, read in (("--load", load, read_cores), ("--memory-load", memory_load, read_memory)):
        if not text:
            continue
        if not runtime.simulated:
            raise Refused(
                f"{option} {text}: only a simulated machine plays a load, and this Sublet runs real processes "
                f"(substrate {runtime.common.substrate}): leave it out, or start one: sublet up --substrate sim",
                reason="option",
            )
        try:
            read(text)
        except ValueError as error:
            raise Refused(f"{option} {error}", reason="malformed") from error
    return {key: text for key, text in ((LOAD, load), (MEMORY_LOAD, memory_load)) if text}


def require_playable(runtime: Runtime, records: Sequence[PodRecord], note: Callable[[str], None]) -> None:
    """Check the loads of pods that a simulator would start; elsewhere say of each load that nobody plays it.

    Raises:
        Refused: a load, or a command whose load is known, cannot be read.
    """
    for record in records:
        if runtime.simulated:
            loads_of(record)
            continue
        for key in sorted({LOAD, MEMORY_LOAD} & record.pod.annotations.keys()):
            note(f"pod {record.pod.key}: the annotation {key} is for a simulated machine; here its command runs")


def attend(runtime: Runtime, record: PodRecord, say: Callable[[str], None]) -> int:
    """Wait until a pod of the simulator has ended; Ctrl-C and TERM end it. Returns the exit code for the command.

    Raises:
        Unavailable: its record cannot be read.
    """
    taken: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: taken.append(number))
    uid, asked = record.pod.uid, False
    while (stored := runtime.pods.get(uid)) is not None and not stored.status.finished:
        if taken and not asked:
            asked = runtime.pods.mark_terminating(uid, record.pod.grace_s, DELETED)
        time.sleep(_POLL_S)
    if taken:
        return SIGNALLED + taken[0]
    if stored is None:
        return SIGNALLED + signal.SIGTERM  # deleted by another command
    codes = [one.exit_code or 0 for one in stored.status.containers.values()]
    reasons = [stored.status.reason, *(one.reason for one in stored.status.containers.values())]
    if why := next(filter(None, reasons), ""):
        more = f": {stored.status.message}" if stored.status.message else ""
        say(f"pod {record.pod.key} has ended, {why}{more}; see: sublet explain pod/{record.pod.name}")
    return next((code for code in codes if code), 0)
