"""The emulated machine of a node: booted, asked through a shell, booted again."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rig.machine import KERNEL_ARGUMENTS, Machine
from rig.packages import RigMissing

from node_rig.network import GUEST_IP, TAP, Inside
from node_rig.root import FIRST, SHELL_PORT, Disks

TUTORIALS = Machine(node_memory_mib=97_242)
"""As the tutorial's: its memory is what the kernel leaves of this. The host gives only what is touched."""
START_LIMIT_S, SHELL_LIMIT_S, TRIES = 120.0, 60.0, 3
"""A boot takes 20 s; one that hangs (CPUs in a stale translation) never ends."""
REBOOT_LIMIT_S = 300.0
"""With the shutdown before it: systemd gives a container that does not heed SIGTERM 90 s."""
_MAC = "52:54:00:00:00:03"
_POLL_S = 0.5
_CONNECT_LIMIT_S = 5.0
_KERNEL = KERNEL_ARGUMENTS.replace("init=/sbin/rig-init cgroup_no_v1=all", f"init={FIRST} systemd.show_status=false")
_STATUS = "rig-status:"


class ShellError(Exception):
    """A command in the guest failed, or did not answer; with what it said."""


@dataclass(slots=True)
class Guest:
    """A machine that is up."""

    folder: Path
    process: "subprocess.Popen[bytes]"
    boot_s: float
    tries: int

    def shell(self, script: str, *, limit_s: float = SHELL_LIMIT_S) -> str:
        """What a bash script prints there, errors too.

        Raises:
            ShellError: it fails, or has not ended within the limit.
        """
        said = _ask(f"{{ {script}\n}} </dev/null\necho {_STATUS}$?\nexit\n", limit_s)
        text, _, status = said.rpartition(_STATUS)
        if status.strip() != "0":
            raise ShellError(f"{script[:200]}: {status.strip() or 'no answer'}: {text[-2000:]}\n{self.console()}")
        return text

    def reboot(self) -> None:
        """Boot anew as an operator would have it; the disks stay as they are.

        Raises:
            ShellError: it does not come up.
        """
        before = self.shell("cat /proc/sys/kernel/random/boot_id")
        with contextlib.suppress(ShellError):
            self.shell("systemctl reboot --no-block")
        end = time.monotonic() + REBOOT_LIMIT_S
        while time.monotonic() < end:
            with contextlib.suppress(ShellError):
                if self.shell("cat /proc/sys/kernel/random/boot_id", limit_s=_CONNECT_LIMIT_S) != before:
                    return
            time.sleep(_POLL_S)
        raise ShellError(f"the guest has not booted again within {REBOOT_LIMIT_S:g} s\n{self.console()}")

    def console(self) -> str:
        """The last words of its kernel."""
        return (self.folder / "console").read_text(errors="replace")[-3000:]


@contextlib.contextmanager
def booted(disks: Disks, inside: Inside, folder: Path, machine: Machine = TUTORIALS) -> Iterator[Guest]:
    """The machine, from its shell's first answer until the block ends.

    Raises:
        RigMissing: the emulator refuses to start, or no boot of three came up.
    """
    (folder / "madt").write_bytes(machine.madt())
    for attempt in range(1, TRIES + 1):
        process = _emulator(disks, inside, folder, machine)
        began_s = time.monotonic()
        try:
            while time.monotonic() < began_s + START_LIMIT_S and process.poll() is None:
                with contextlib.suppress(ShellError):
                    guest = Guest(folder, process, 0.0, attempt)
                    guest.shell("true", limit_s=_CONNECT_LIMIT_S)
                    guest.boot_s = time.monotonic() - began_s
                    yield guest
                    return
                time.sleep(_POLL_S)
        finally:
            process.kill()
            process.wait()
        if process.returncode != -9:
            raise RigMissing(f"the emulator ended at once:\n{(folder / 'qemu.log').read_text()}")
    said = (folder / "console").read_text(errors="replace")[-3000:]
    raise RigMissing(f"the node did not come up within {START_LIMIT_S:g} s, {TRIES} times\n{said}")


def _emulator(disks: Disks, inside: Inside, folder: Path, machine: Machine) -> "subprocess.Popen[bytes]":
    words: list[str | Path] = [
        *disks.parts.emulator,
        *("-nodefaults", "-no-user-config", "-display", "none", "-bios", "qboot.rom"),
        *machine.arguments(folder / "madt"),
        *("-kernel", disks.parts.kernel, "-append", _KERNEL),
        *_disk("root", disks.root),
        *_disk("content", disks.content),
        *("-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev=net,mac={_MAC},romfile="),
        *("-serial", "file:console"),
    ]  # fmt: skip
    with (folder / "qemu.log").open("wb") as log:
        return subprocess.Popen(inside.command(words), cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _disk(name: str, image: Path) -> list[str]:
    """What is written there lasts for as long as the emulator."""
    drive = f"file={image},if=none,id={name},format=raw,snapshot=on"
    return ["-drive", drive, "-device", f"nvme,drive={name},serial={name}"]


def _ask(script: str, limit_s: float) -> str:
    """What the guest's shell says until it ends; an answer may lack its end."""
    said = b""
    end = time.monotonic() + limit_s
    try:
        with socket.create_connection((GUEST_IP, SHELL_PORT), min(_CONNECT_LIMIT_S, limit_s)) as line:
            line.sendall(script.encode())
            while (left_s := end - time.monotonic()) > 0:
                line.settimeout(left_s)
                if not (piece := line.recv(65536)):
                    break
                said += piece
    except OSError as error:
        if not said:
            raise ShellError(f"the guest's shell does not answer: {error}") from error
    return said.decode(errors="replace")
