"""A `sublet up` on the simulated machine with a state folder of its own, and commands that are typed beside it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from slow_machines import patience_s

ROOT = Path(__file__).parents[2]
PATIENCE_S = patience_s(120.0)
POLL_S = 0.2


class LiveSim:
    """A running instance; `user` is the uid that everything is typed as, None for the caller."""

    def __init__(self, home: Path, interpreter: str, user: int | None) -> None:
        self.home, self._user = home, user
        self.state = home / ".local/state/sublet"
        self._python = [interpreter, "-P", "-m", "sublet"]
        paths = (str(ROOT), sysconfig.get_paths()["purelib"])
        self._env = {
            "PATH": os.defpath, "HOME": str(home), "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1",
            # What a user has by itself; for root, who has another, it is said.
            **({"SUBLET_STATE_DIR": str(self.state)} if user is None else {}),
        }  # fmt: skip
        self._up: subprocess.Popen[str] | None = None

    def start(self, *words: str) -> str:
        """Type `sublet up` and wait until it says that it is up; what it has said."""
        log = (self.home / "up.txt").open("w")
        with log:
            self._up = subprocess.Popen(
                [*self._python, "up", "--nats-port", "0", *words], stdout=log, stderr=log, text=True, **self._as_user()
            )
        self.wait_for(lambda: "Ctrl-C stops it" in self.said() or self._up is None or self._up.poll() is not None)
        return self.said()

    def said(self) -> str:
        """What `sublet up` has said so far."""
        return (self.home / "up.txt").read_text()

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Type another command to its end."""
        return subprocess.run(
            [*self._python, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S, **self._as_user()
        )

    def services(self) -> dict[str, dict[str, Any]]:
        """Process and number of restarts of each part."""
        found: dict[str, dict[str, Any]] = json.loads((self.state / "up.json").read_text())["services"]
        return found

    def nats_pid(self) -> int:
        """The process of the NATS server; 0 while there is none."""
        # It names the file of its ports after itself; one that was killed leaves its own.
        pids = (int(file.stem.rpartition("_")[2]) for file in (self.state / "nats").glob("nats-server_*.ports"))
        return next((pid for pid in pids if Path(f"/proc/{pid}/exe").exists()), 0)

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait for a condition, never for a time."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, self.said()
            time.sleep(POLL_S)

    def stop(self) -> int:
        """Type Ctrl-C and wait for the end."""
        assert self._up is not None
        self._up.send_signal(signal.SIGINT)
        return self._up.wait(PATIENCE_S)

    def kill(self) -> None:
        """End what is left of it; the services die with their parent."""
        if self._up is not None and self._up.poll() is None:
            self._up.kill()
            self._up.wait()

    def _as_user(self) -> dict[str, Any]:
        own = {} if self._user is None else {"user": self._user, "group": self._user, "extra_groups": []}
        return {"env": self._env, "cwd": "/", **own}


@contextlib.contextmanager
def live_sim(home: Path, user: int | None = None) -> Iterator[LiveSim]:
    """An instance that is not started yet, and is over at the end."""
    interpreter = sys.executable
    if user is not None:
        os.chown(home, user, user)
        interpreter = interpreter_of(user)
    sim = LiveSim(home, interpreter, user)
    try:
        yield sim
    finally:
        sim.kill()


def interpreter_of(user: int) -> str:
    """A Python of this version that the user may run: the one of this process may lie in root's own folder.

    Raises:
        LookupError: there is none.
    """
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    places = (sys.executable, shutil.which(name, path=os.defpath), shutil.which(name, path="/usr/local/bin"))
    for found in filter(None, places):
        words = [found, "-c", "import encodings"]
        with contextlib.suppress(OSError):
            done = subprocess.run(words, user=user, group=user, extra_groups=[], env={}, cwd="/", check=False)
            if done.returncode == 0:
                return found
    raise LookupError(f"user {user} may run no {name}")
