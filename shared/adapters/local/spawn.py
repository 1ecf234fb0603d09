"""Start one container: a process that is in its cgroup before it runs anything of the pod's.

Standard library only: the small process that watches a pod imports this.
"""

import contextlib
import errno
import gc
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.local.rights import give_up_rights
from shared.core.pods.exit_codes import CANNOT_EXECUTE, CANNOT_START, NOT_FOUND


class NotStarted(Exception):
    """A container's command could not be run; `code` is the exit code for it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def spawn(cgroups: Cgroups, container: Mapping[str, Any], log: Path | None) -> int:
    """Start a container as `launch.json` describes it; return its process id once the command runs.

    `log` receives its output, in a session of its own; None leaves it on this process's streams and terminal.

    Raises:
        NotStarted: a step failed; no part of the command has run.
    """
    mine, theirs = os.pipe()  # closed by exec: silence until the end means that the command runs
    pid = os.fork()
    if pid == 0:
        _become(cgroups, container, log, theirs)
    os.close(theirs)
    with os.fdopen(mine) as pipe:
        report = pipe.read()
    if report:
        os.waitpid(pid, 0)
        raise NotStarted(**json.loads(report))
    return pid


def set_oom_score(value: int) -> None:
    """How readily the kernel ends this process when memory runs out, -1000 to 1000."""
    with contextlib.suppress(PermissionError):  # lowering it takes a right that is not needed otherwise
        Path("/proc/self/oom_score_adj").write_text(str(value))


def _become(cgroups: Cgroups, container: Mapping[str, Any], log: Path | None, report: int) -> NoReturn:
    """In the child: what takes root, join the cgroup, then become the pod's user and run the command."""
    gc.disable()  # it would write to every object that the watcher holds, and each page of them count as the pod's
    step, code = "prepare", CANNOT_START
    try:
        set_oom_score(container["oom_score_adj"])
        if log is not None:
            os.setsid()
            _redirect(log)
        user, command = container["user"], container["command"]
        env = {**(os.environ if user["env"] is None else user["env"]), **container["env"]}
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these; a command expects them
            signal.signal(number, signal.SIG_DFL)
        step = f"join cgroup {container['group']}"
        # Before anything of the pod's runs, and late: each page that is written from here on counts as the pod's.
        cgroups.attach(container["group"], os.getpid())
        step = f"become user {user['uid']}"
        give_up_rights(user["uid"], user["gid"], user["groups"])
        step = f"enter folder {container['workdir']}"
        # As the pod's user, not as root: a folder that is closed to him stays closed.
        os.chdir(container["workdir"])
        # The watcher blocks signals, and a mask outlives exec.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        step, code = f"run {command[0]}", CANNOT_EXECUTE
        os.execvpe(command[0], command, env)  # noqa: S606
    except Exception as error:  # noqa: BLE001 - in a forked child the pipe is the only way to say anything
        if code == CANNOT_EXECUTE and getattr(error, "errno", None) == errno.ENOENT:
            code = NOT_FOUND
        why = getattr(error, "strerror", None) or str(error)
        message = f"container {container['name']}: cannot {step}: {why}"
        os.write(report, json.dumps({"message": message, "code": code}).encode())
    finally:
        # Not `sys.exit`: that would run what the watcher has registered, in a copy of it.
        os._exit(CANNOT_START)


def _redirect(log: Path) -> None:
    log.parent.mkdir(exist_ok=True)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
