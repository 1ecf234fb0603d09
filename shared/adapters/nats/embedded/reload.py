"""Another process finds the embedded server by its files, and has it reload its accounts while it runs."""

import contextlib
import json
import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from shared.adapters.nats.embedded.accounts import AccountsFile
from shared.adapters.nats.embedded.server import ACCOUNTS, CONFIG, PROGRAM
from shared.errors import Unavailable, Unfit

RELOAD_TIMEOUT_S = 5.0
POLL_S = 0.01
RELOADED, FAILED = "Reloaded server configuration", "Failed to reload server configuration"
_PORTS = re.compile(rf"{PROGRAM}_(\d+)\.ports")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that `NatsServer` started in a folder and that runs now."""

    pid: int
    url: str
    accounts: AccountsFile
    log_file: Path

    def set_login(self, team: str, hashed: str | None) -> None:
        """Set a team's login with this hashed password, or remove it (None).

        Connections stay, except those of a removed login or a changed password.

        Raises:
            Unavailable: the server refuses it, and continues with its former logins.
            Unfit: another user's server.
        """
        with self.accounts.held():
            # Kept to be put back: a server that refuses the new file would refuse to start with it, too.
            before = self.accounts.logins()
            after = {**before, team: hashed} if hashed else {name: before[name] for name in before if name != team}
            self.accounts.write(after)
            try:
                # A new account's imports begin to work with the second reload (measured on 2.15.1).
                for _ in range(2):
                    self._reload()
            except (Unavailable, Unfit):
                self.accounts.write(before)
                raise

    def _reload(self) -> None:
        # Before the signal, because the answer to an earlier reload is in the log as well.
        read = self.log_file.stat().st_size
        try:
            os.kill(self.pid, signal.SIGHUP)
        except PermissionError as error:
            raise Unfit(
                f"the NATS server (process {self.pid}) is another user's: try with sudo", reason="user"
            ) from error
        except ProcessLookupError as error:
            raise Unavailable(f"the NATS server (process {self.pid}) has just ended", reason="no_server") from error
        deadline = time.monotonic() + RELOAD_TIMEOUT_S
        while time.monotonic() < deadline:
            with self.log_file.open(errors="replace") as log:
                log.seek(min(read, self.log_file.stat().st_size))  # it may just have been begun anew
                said = log.read()
            if RELOADED in said:
                return
            if FAILED in said:
                raise Unavailable(f"the NATS server refuses the accounts: {said.partition(FAILED)[2]}", reason="reload")
            time.sleep(POLL_S)
        raise Unavailable(
            f"the NATS server did not reload within {RELOAD_TIMEOUT_S:g} s (log: {self.log_file})", reason="reload"
        )


def local_server(folder: Path) -> LocalServer | None:
    """The server that runs in this folder; None where none does."""
    config = folder / CONFIG
    for path in sorted(folder.glob(f"{PROGRAM}_*.ports")) if folder.is_dir() else ():
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            pid = int(_PORTS.fullmatch(path.name)[1])  # type: ignore[index]  # no match is a TypeError: not our file
            # The number may be another process's by now; only ours has this configuration on its command line.
            if os.fsencode(config) not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                continue  # left by a server that was killed
            log = json.loads(re.findall(r"^log_file: (.*)$", config.read_text(), re.MULTILINE)[0])
            url = json.loads(path.read_text())["nats"][0]
            return LocalServer(pid, url, AccountsFile(folder / ACCOUNTS), Path(log))
    return None
