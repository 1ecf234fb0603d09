"""`read_url` reads a NATS server's address, with its login, from a file that only its owner may read."""

import os
import stat
from pathlib import Path

from shared.errors import BadConfig

_LARGEST_BYTES = 4096


def read_url(path: Path, also: str = "") -> str:
    """The one line of the file. `also` is what was given beside it, which must be nothing.

    Raises:
        BadConfig: it cannot be read, is somebody else's or open to others, or holds something else than one address.
    """
    if also:
        raise BadConfig("--nats-url and --nats-url-file: want one of them", reason="option")
    try:
        # O_NONBLOCK: to open a pipe without a writer would wait for ever. Owner and mode are asked of the open file, so
        # that nobody can exchange it in between.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            facts = os.fstat(file.fileno())
            text = file.read(_LARGEST_BYTES + 1).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise BadConfig(f"--nats-url-file {path}: {why}", reason="unreadable") from error
    if facts.st_uid not in (0, os.geteuid()) or stat.S_IMODE(facts.st_mode) & 0o077:
        raise BadConfig(f"--nats-url-file {path}: others may read or change it; chmod 600 {path}", reason="open")
    if len(text) > _LARGEST_BYTES or len(text.split()) != 1 or "://" not in text:
        raise BadConfig(
            f"--nats-url-file {path}: want one address, as in nats://user:password@host:4222", reason="malformed"
        )
    return text
