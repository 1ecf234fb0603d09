"""The pause file stops all evictions of this node while it exists, whatever the bus, central or a policy says."""

from pathlib import Path

NAME = "evictions.paused"


class PauseFile:
    """`evictions.paused` in the state folder; its text is the reason."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / NAME

    def why(self) -> str:
        """Why evictions are paused, "" when they are not. A file that cannot be read counts: a brake fails closed."""
        try:
            return self.path.read_text(errors="replace").strip() or "no reason given"
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{self.path}: {error.strerror}"

    def set(self, reason: str) -> None:
        """Pull the brake.

        Raises:
            OSError: the state folder cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(f"{reason}\n")

    def release(self) -> bool:
        """Let go; False when it was not pulled.

        Raises:
            OSError: the file cannot be removed.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True
