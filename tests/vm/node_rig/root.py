"""The disks of the emulated node: Debian with systemd, containerd and kubelet, and the images that containerd has."""

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube_rig.images import Image
from kube_rig.isolation import POD_NETWORK
from kube_rig.node import NODE
from rig.build import VM, Parts, build
from rig.packages import SUITE, find_mirror, run
from rig_parts import Say, fresh, until

from node_rig.network import GUEST_IP, OUTSIDE_IP, PREFIX

SHELL_PORT = 9999
FIRST = "/usr/local/sbin/rig-first"
"""The program that the kernel starts, which hands over to systemd."""
FILES = Path(__file__).parent / "guest"
INCLUDE = ("systemd", "dbus", "kmod", "iproute2", "iptables", "procps", "stress",
           "containerd", "runc", "containernetworking-plugins")  # fmt: skip
PROGRAMS = ("kubelet", "kube-proxy")
ENABLED = {"rig-setup.service": "sysinit.target.wants", "rig-shell.socket": "sockets.target.wants"}
"""What starts at each boot from the first one on; kubelet does so from the moment that it is told who it is."""
UNITS = "etc/systemd/system"
NOT_NEEDED = ("getty.target", "timers.target", "remote-fs.target", "systemd-logind.service", "systemd-pstore.service",
              "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service", "e2scrub_reap.service",
              "modprobe@dm_mod.service", "modprobe@loop.service", "systemd-firstboot.service", "systemd-repart.service",
              "systemd-sysusers.service", "systemd-networkd.service", "systemd-timesyncd.service")  # fmt: skip
"""They would take seconds of the emulated CPUs at each boot."""
ROOT_SIZE, CONTENT_SIZE = "3G", "8G"
_EXT4 = ("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,^metadata_csum", "-m0")
_IMPORT_LIMIT_S = 30.0
_KEPT = 2
"""Disks of earlier checkouts that stay: others may have them open."""


@dataclass(frozen=True, slots=True)
class Disks:
    """Everything that the node boots from."""

    parts: Parts
    """Emulator and kernel; the root image in it is another machine's."""
    root: Path
    content: Path
    """What lies at /var/lib/containerd: the images, unpacked."""


def build_disks(programs: Mapping[str, Path], images: Sequence[Image], pause: Image, say: Say) -> Disks:
    """Build what is not in the cache yet; a second caller waits.

    Raises:
        RigMissing: something cannot be had.
    """
    parts = build(say)
    with VM.cache_held() as cache:
        return Disks(parts, _root(cache, parts, programs, pause, say), _content(cache, images, say))


def _root(cache: Path, parts: Parts, programs: Mapping[str, Path], pause: Image, say: Say) -> Path:
    base = cache / f"node-base-{_digest(SUITE, *INCLUDE)}"
    if not base.exists():
        say("making the node's Debian tree (two minutes)")
        with fresh(base) as place:
            run(["debootstrap", "--variant=minbase", f"--include={','.join(INCLUDE)}", SUITE, place,
                 find_mirror().address])  # fmt: skip
            shutil.rmtree(place / "var/cache/apt")
            shutil.rmtree(place / "var/lib/apt/lists")
    texts = [path.read_text() for path in sorted(FILES.iterdir())]
    kept = (str(programs[name]) for name in PROGRAMS)
    image = cache / f"node-root-{_digest(base.name, str(parts.kernel), pause.name, *kept, *texts, *NOT_NEEDED)}.img"
    if not image.exists():
        say("making the node's root image")
        with fresh(image) as place, tempfile.TemporaryDirectory(prefix=".tree-", dir=cache) as folder:
            tree = Path(folder) / "root"
            run(["cp", "-a", base, tree])
            _fill(tree, parts, programs, pause)
            run([*_EXT4, "-d", tree, place, ROOT_SIZE])
        _forget_old(cache, "node-root-*.img")
    return image


def _fill(tree: Path, parts: Parts, programs: Mapping[str, Path], pause: Image) -> None:
    """Kernel modules, programs, and the files of `guest/` with what they leave open."""
    (modules,) = parts.kernel.parent.glob("lib/modules/*")
    run(["cp", "-a", modules, tree / "usr/lib/modules"] if (tree / "usr/lib/modules").exists() else
        ["cp", "-aT", modules.parent, tree / "usr/lib/modules"])  # fmt: skip
    run(["chroot", tree, "depmod", modules.name])
    for name in PROGRAMS:
        shutil.copy(programs[name], tree / f"usr/local/bin/{name}")
    open_words = {"address": f"{GUEST_IP}/{PREFIX}", "gateway": OUTSIDE_IP, "port": str(SHELL_PORT), "node": NODE,
                  "ip": GUEST_IP, "pods": POD_NETWORK, "pause": pause.name}  # fmt: skip
    places = {
        "first.sh": tree / FIRST.removeprefix("/"),
        "setup.sh": tree / "usr/local/sbin/rig-setup",
        "containerd.toml": tree / "etc/containerd/config.toml",
        "system.conf": tree / "etc/systemd/system.conf",
    }
    for source in FILES.iterdir():
        text = source.read_text()
        for word, value in open_words.items():
            text = text.replace(f"@{word}@", value)
        target = places.get(source.name, tree / UNITS / source.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    for script in ("first.sh", "setup.sh"):
        places[script].chmod(0o755)
    for unit, wanted_by in ENABLED.items():
        folder = tree / UNITS / wanted_by
        folder.mkdir(exist_ok=True)
        (folder / unit).symlink_to(f"/{UNITS}/{unit}")
    for unit in NOT_NEEDED:
        (tree / UNITS / unit).unlink(missing_ok=True)
        (tree / UNITS / unit).symlink_to("/dev/null")
    (tree / UNITS / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    (tree / "etc/hostname").write_text(f"{NODE}\n")
    (tree / "etc/machine-id").write_text(f"{hashlib.md5(NODE.encode(), usedforsecurity=False).hexdigest()}\n")
    (tree / "etc/fstab").write_text("")


def _content(cache: Path, images: Sequence[Image], say: Say) -> Path:
    """The folder that a containerd of this machine has filled: in the guest it would take many minutes."""
    stamps = (f"{image.name} {image.archive.stat().st_mtime_ns} {image.archive.stat().st_size}" for image in images)
    disk = cache / f"node-content-{_digest(CONTENT_SIZE, *stamps)}.img"
    if not disk.exists():
        say("unpacking the node's images")
        with fresh(disk) as place, tempfile.TemporaryDirectory(prefix=".content-", dir=cache) as folder:
            kept = Path(folder) / "kept"
            with _containerd(Path(folder), kept) as socket:
                for image in images:
                    run(["ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", image.archive])
            run([*_EXT4, "-d", kept, place, CONTENT_SIZE])
        _forget_old(cache, "node-content-*.img")
    return disk


@contextlib.contextmanager
def _containerd(folder: Path, kept: Path) -> Iterator[Path]:
    """The socket of a containerd of its own, without what makes pods."""
    socket, config = folder / "s", folder / "config.toml"
    config.write_text(
        f'version = 2\nroot = "{kept}"\nstate = "{folder}/state"\n'
        f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "{socket}"\n'
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "containerd", "--config", config],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        words = ["ctr", "--address", str(socket), "version"]
        until(lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0, _IMPORT_LIMIT_S,
              "a containerd that unpacks images")  # fmt: skip
        yield socket
    finally:
        process.terminate()
        process.wait()


def _forget_old(cache: Path, pattern: str) -> None:
    disks = sorted(cache.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in disks[_KEPT:]:
        old.unlink()


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
