"""The hand brake stops all evictions of this node while its file exists, whatever the bus, central or a policy says."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

NAME = "evictions.paused"
_UNTIL = "until "
"""How the last line begins where the pause has an end; what stands behind it is a time with its offset."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class PauseFile:
    """`evictions.paused` in the state folder; its text is the reason, and its last line may say until when."""

    def __init__(self, state_dir: Path, now: Callable[[], datetime] = _utc_now) -> None:
        """`now` is the time of day: an end is meant as the clock on the wall shows it, and holds over a reboot."""
        self.path, self._now = state_dir / NAME, now

    def why(self) -> str:
        """Why evictions are paused, "" when they are not, or not any more.

        A file that cannot be read counts, and so does an end that cannot: a brake fails closed.
        """
        try:
            text = self.path.read_text(errors="replace").strip()
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{self.path}: {error.strerror}"
        reason, until = _read(text)
        if until is None:
            return reason or "no reason given"
        return "" if self._now() >= until else f"{reason or 'no reason given'} (until {until:%Y-%m-%d %H:%M:%S %Z})"

    def set(self, reason: str, until: datetime | None = None) -> None:
        """Pull the brake, for good or until that time.

        Raises:
            OSError: the state folder cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # One line: a reason must not be able to say an end.
        plain = " ".join(reason.split())
        end = "" if until is None else f"{_UNTIL}{until.isoformat()}\n"
        self.path.write_text(f"{plain}\n{end}")

    def release(self) -> bool:
        """Let go; False when it was not pulled.

        Raises:
            OSError: the file cannot be removed.
        """
        pulled = bool(self.why())
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return pulled


def _read(text: str) -> tuple[str, datetime | None]:
    """The reason, and until when; None: there is no end, or none that can be read."""
    reason, _, last = text.rpartition("\n")
    if not last.startswith(_UNTIL):
        return text, None
    try:
        until = datetime.fromisoformat(last.removeprefix(_UNTIL))
    except ValueError:
        return text, None
    return (reason, until) if until.tzinfo is not None else (text, None)
