"""Pauses evictions: `pull` and `release` write the file, then query the evictor."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from shared.adapters.files.pause import PauseFile
from shared.errors import SubletError, Unavailable
from sublet.ask import NOT_THERE, ask, connected, target
from sublet.exit_codes import FAILED, OK
from sublet.instance import writable_settings
from sublet.output import printable
from sublet.terminal.dry_run import dry
from sublet.views.facts import read

CONDITION = "EvictionsPaused"
Outcome = tuple[str, int]
"""What is said, and the exit code."""


def pull(reason: str, until: datetime | None = None) -> Outcome:
    """Pause evictions, until that time or until they are let go on.

    Raises:
        Unfit: the Sublet of this machine is root's, and this user is not root.
        Unavailable: the file cannot be written.
    """
    brake = PauseFile(writable_settings().state_dir)
    _on_file(brake, lambda: brake.set(reason, until))
    node, paused, why = _asked()
    if paused is None:
        words = f"written to {brake.path}; {why}: evictions are paused when it starts, and this is not known before"
        return words, NOT_THERE
    if not paused:
        words = (
            f"evictions of node {node} are NOT paused: {brake.path} is written, and the evictor does not see it; "
            "run this with its settings (SUBLET_STATE_DIR)"
        )
        return words, FAILED
    return f"evictions are paused on node {node}, the evictor says so; {_end(until)}", OK


def _end(until: datetime | None) -> str:
    by_hand = "go on with: sublet resume"
    return by_hand if until is None else f"they go on by themselves at {until:%Y-%m-%d %H:%M:%S %Z}, or {by_hand}"


def rehearse_pull(until: datetime | None = None) -> Outcome:
    """What `pull` would do now: the file it writes, and whether the evictor is there to see it. Writes nothing.

    Raises:
        Unfit: as `pull`.
    """
    brake = PauseFile(writable_settings().state_dir)
    state = "would stay paused" if brake.why() else "would be paused"
    return _rehearsed(f"{brake.path} would be written, evictions {state}; {_end(until)}")


def rehearse_release() -> Outcome:
    """What `release` would do now. Removes nothing.

    Raises:
        Unfit: as `release`.
    """
    brake = PauseFile(writable_settings().state_dir)
    change = "would be removed, evictions would go on" if brake.why() else "is not there, nothing would change"
    return _rehearsed(f"{brake.path} {change}")


def _rehearsed(words: str) -> Outcome:
    _, paused, why = _asked()
    return dry(words if paused is not None else f"{words}; {why}"), OK if paused is not None else NOT_THERE


def release() -> Outcome:
    """Let evictions go on.

    Raises:
        Unfit: the Sublet of this machine is root's, and this user is not root.
        Unavailable: the file cannot be removed.
    """
    brake = PauseFile(writable_settings().state_dir)
    was_paused = _on_file(brake, brake.release)
    node, paused, why = _asked()
    done = f"{brake.path} is removed" if was_paused else f"there was no {brake.path}"
    if paused is None:
        return f"{done}; {why}: nothing is paused when it starts, and this is not known before", NOT_THERE
    if paused:
        return f"evictions of node {node} are STILL paused: {done}, and the evictor sees another pause", FAILED
    return f"evictions go on on node {node}" if was_paused else f"evictions of node {node} were not paused", OK


def _on_file(brake: PauseFile, change: Callable[[], bool | None]) -> bool:
    try:
        return bool(change())
    except OSError as error:
        raise Unavailable(f"{brake.path}: {error.strerror}; try it as root", reason="unwritable") from error


def _asked() -> tuple[str, bool | None, str]:
    """The node, whether its evictor is paused, and why that is not known."""
    try:
        where = target()
        return where.node, asyncio.run(_paused()), f"the evictor of node {where.node} does not answer"
    except SubletError as error:
        return "", None, f"the evictor cannot be asked ({printable(str(error))})"


async def _paused() -> bool | None:
    where = target()
    async with connected(where) as bus:
        answer = await ask(bus, where.node, "evictor")
    if answer is None:
        return None
    conditions = read(where.node, {"evictor": answer}).answered("evictor", "conditions", [])
    return any(condition.get("type") == CONDITION for condition in conditions)
