"""One boot of the emulated machine for one command: output, exit code, and how long it took."""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rig.build import VIRTIOFSD, Parts
from rig.machine import KERNEL_ARGUMENTS, Machine
from rig.packages import RigMissing

START_LIMIT_CPU_S = 120.0
"""A boot takes 16 to 40 s of CPU time; one that takes this much hangs (CPUs in a stale translation) forever.

CPU time, not time: beside other work the same boot takes three times as long.
"""
START_LIMIT_S = 300.0
"""For one that hangs without using a CPU."""
HUNG = "blocked for more than"
"""The same may befall a CPU a little later; then the guest's kernel tells of a task that hangs on it."""
TRIES = 3
SOCKET_LIMIT_S = 10.0
POWER_OFF_LIMIT_S = 20.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Done:
    """What the command left."""

    stdout: str
    stderr: str
    code: int | None
    """None: it did not end in time, or the machine stopped before."""
    boot_s: float
    """From the start of the emulator to the command's, of the try that came up."""
    run_s: float
    tries: int
    console: str


def run_command(parts: Parts, machine: Machine, command: str, share: Path, *, limit_s: float) -> Done:
    """Boot, run a bash script with `share` at /share, power off. The machine's own disk is as new every time.

    Raises:
        RigMissing: the emulator refuses to start, or no boot of three came up.
    """
    for attempt in range(1, TRIES + 1):
        with tempfile.TemporaryDirectory(prefix="sublet-vm-") as folder:
            done = _Boot(parts, machine, command, share, Path(folder)).run(limit_s, attempt)
        if done is not None:
            return done
    raise RigMissing(
        f"the emulated machine did not come up within {START_LIMIT_CPU_S:.0f} s of CPU time or {START_LIMIT_S:.0f} s, "
        f"or hung at once, {TRIES} times"
    )


class _Boot:
    def __init__(self, parts: Parts, machine: Machine, command: str, share: Path, work: Path) -> None:
        self._parts, self._machine, self._share, self._work = parts, machine, share, work
        (work / "madt").write_bytes(machine.madt())
        (work / "command").write_text(command)

    def run(self, limit_s: float, attempt: int) -> Done | None:
        """None where it did not come up, or hung before the command had begun."""
        started_at = time.monotonic()
        with self._process("virtiofsd", self._share_words()) as share:
            if not _wait((self._work / "fs").exists, share, SOCKET_LIMIT_S):
                raise RigMissing(f"virtiofsd did not start:\n{self._text('virtiofsd.log')}")
            with self._process("qemu", self._emulator_words()) as emulator:
                _wait(lambda: self._started() or _cpu_s(emulator.pid) > START_LIMIT_CPU_S, emulator, START_LIMIT_S)
                if not self._started():
                    if emulator.poll() is not None:
                        raise RigMissing(f"the emulator ended at once:\n{self._text('qemu.log')}")
                    return None
                up_at = time.monotonic()
                _wait(lambda: "exit" in self._text("state") or self._hangs(), emulator, limit_s)
                if self._hangs():
                    return None
                ended_at = time.monotonic()
                if "exit" in self._text("state"):
                    _wait(lambda: False, emulator, POWER_OFF_LIMIT_S)
        _, _, code = self._text("state").partition("exit ")
        return Done(
            stdout=self._text("out"),
            stderr=self._text("err"),
            code=int(code) if code.strip() else None,
            boot_s=up_at - started_at,
            run_s=ended_at - up_at,
            tries=attempt,
            console=self._text("console"),
        )

    def _started(self) -> bool:
        return "started" in self._text("state")

    def _hangs(self) -> bool:
        # What a story does may make tasks hang as well: once it has begun, that is for its test to say.
        return HUNG in self._text("console") and not (self._share / "out").exists()

    @contextlib.contextmanager
    def _process(self, name: str, words: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
        with (self._work / f"{name}.log").open("wb") as log:
            # Nothing outlives a test run that was killed.
            command = ["setpriv", "--pdeathsig", "KILL", *words]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._work)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _text(self, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self._work / name).read_text(errors="replace")
        return ""

    def _share_words(self) -> list[str]:
        return [str(VIRTIOFSD), "--socket-path=fs", "-o", f"source={self._share}", "-o", "cache=auto", "-o", "xattr"]

    def _emulator_words(self) -> list[str]:
        ports: list[str] = []
        for name in ("out", "err", "state"):
            ports += ["-chardev", f"file,id={name},path={name}"]
            ports += ["-device", f"virtserialport,chardev={name},name={name}"]
        return [
            *self._parts.emulator,
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-bios", "qboot.rom"),
            *self._machine.arguments(self._work / "madt"),
            *("-kernel", str(self._parts.kernel), "-append", KERNEL_ARGUMENTS),
            *("-drive", f"file={self._parts.root_image},if=none,id=root,format=raw,snapshot=on"),
            *("-device", "nvme,drive=root,serial=root"),
            *("-chardev", "socket,id=fs,path=fs", "-device", "vhost-user-fs-pci,chardev=fs,tag=share"),
            *("-device", "virtio-serial-pci", *ports),
            *("-fw_cfg", "name=opt/rig/command,file=command", "-serial", "file:console"),
        ]


def _cpu_s(pid: int) -> float:
    """CPU time that a process has used, all threads, in seconds; 0 where it is gone. Source: proc_pid_stat(5)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait(condition: Callable[[], bool], process: "subprocess.Popen[bytes]", limit_s: float) -> bool:
    """Whether the condition came true while the process ran and the limit lasted."""
    end = time.monotonic() + limit_s
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            return condition()
        time.sleep(_POLL_S)
    return True
