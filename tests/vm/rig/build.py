"""The parts of the emulated machine, each built once: emulator, kernel, root image. `python -m rig` builds all."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rig_parts import Needs, Say, fresh

from rig.packages import SUITE, RigMissing, find_mirror, own_lists, run, unpack

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]
REQUIREMENTS = PROJECT / "requirements/run.txt"
GUEST_PYTHON = "3.11"  # of Debian 12
INCLUDE = ("python3", "stress", "busybox-static")
PYTHON_PATH = ("/run/product", "/opt/lib")
"""Where the guest's Python looks, whatever the environment: the product of the moment, and what it needs."""
MODULES = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_console",
           "fuse", "virtiofs", "qemu_fw_cfg")  # fmt: skip
"""Kernel modules in the order in which they are loaded; disk and file system of the root are built in."""
KERNEL = "linux-image-cloud-amd64"
VIRTIOFSD = Path("/usr/lib/qemu/virtiofsd")
SHARED_ROMS = Path("/usr/share/qemu")
VM = Needs(
    name="vm",
    what="the emulated machine",
    why_root="debootstrap makes device files, virtiofsd makes a namespace",
    tools={
        "apt-get": "apt",
        "qemu-system-x86_64": "qemu-system-x86",  # which also brings libraries and boot roms
        str(VIRTIOFSD): "qemu-system-x86",
        "debootstrap": "debootstrap",
        "lz4": "lz4",
        "mke2fs": "e2fsprogs",
    },
)
_LZ4_MAGIC = b"\x02\x21\x4c\x18"
_IMAGE_SIZE = "2G"


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that a boot needs."""

    emulator: tuple[str, ...]
    """Program and the arguments that say where its roms lie."""
    kernel: Path
    root_image: Path


def build(say: Say = lambda _line: None) -> Parts:
    """Build what is not in the cache yet; a second caller waits.

    Raises:
        RigMissing: something cannot be had.
    """
    with VM.cache_held() as cache:
        emulator = _emulator(cache, say)
        kernel = _kernel(cache, say)
        return Parts(emulator, kernel / "vmlinux", _root_image(cache, kernel, say))


def _emulator(cache: Path, say: Say) -> tuple[str, ...]:
    """QEMU 10 from the backports; where those are not to be had the installed one, which hangs more often."""
    folder = cache / "qemu"
    if not folder.exists():
        say("fetching the emulator")
        try:
            lists = own_lists(cache / "apt", f"{SUITE}-backports")
            with fresh(folder) as place:
                unpack(["qemu-system-x86", "qemu-system-data"], place, lists=lists)
        except RigMissing as error:
            say(f"using the installed emulator: {error}")
            return ("qemu-system-x86_64", "-L", str(SHARED_ROMS))
    program, roms = folder / "usr/bin/qemu-system-x86_64", folder / "usr/share/qemu"
    return (str(program), "-L", str(roms), "-L", str(SHARED_ROMS))


def _kernel(cache: Path, say: Say) -> Path:
    """A folder with `vmlinux` and the kernel's package below it."""
    depends = run(["apt-cache", "depends", "--important", KERNEL]).split()
    package = next((word for word in depends if word.endswith("-cloud-amd64") and word != KERNEL), None)
    if package is None:
        raise RigMissing(f"package {KERNEL} is unknown or names no kernel; run: apt-get update")
    folder = cache / package
    if not folder.exists():
        say(f"fetching {package}")
        with fresh(folder) as place:
            unpack([package], place)
            bz_image = next(place.glob("boot/vmlinuz-*")).read_bytes()
            packed = bz_image[bz_image.find(_LZ4_MAGIC) :]
            # What follows the packed part makes lz4 complain after it has done its work.
            elf = subprocess.run(["lz4", "-dc"], input=packed, capture_output=True, check=False).stdout
            if not elf.startswith(b"\x7fELF"):
                raise RigMissing(f"{package}: no lz4-packed kernel found in its boot image")
            (place / "vmlinux").write_bytes(elf)
    return folder


def _root_image(cache: Path, kernel: Path, say: Say) -> Path:
    """An ext4 image: Debian, the product's Python dependencies in /opt/lib, the modules, and process 1."""
    base = cache / f"base-{_digest(SUITE, *INCLUDE)}"
    if not base.exists():
        say("making the guest's Debian tree (a minute)")
        with fresh(base) as place:
            include = ",".join(INCLUDE)
            run(["debootstrap", "--variant=minbase", f"--include={include}", SUITE, place, find_mirror().address])
            shutil.rmtree(place / "var/cache/apt")
            shutil.rmtree(place / "var/lib/apt/lists")
    init = HERE / "init.sh"
    key = _digest(base.name, kernel.name, *MODULES, *PYTHON_PATH, init.read_text(), REQUIREMENTS.read_text())
    image = cache / f"root-{key}.img"
    if not image.exists():
        say("making the guest's root image")
        with fresh(image) as place, tempfile.TemporaryDirectory(prefix=".tree-", dir=cache) as folder:
            tree = Path(folder) / "root"
            run(["cp", "-a", base, tree])
            _fill(tree, kernel, init)
            run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,^metadata_csum", "-m0", "-d", tree, place,
                 _IMAGE_SIZE])  # fmt: skip
        for old in cache.glob("root-*.img"):
            if old != image:
                old.unlink()
    return image


def _fill(tree: Path, kernel: Path, init: Path) -> None:
    shutil.copy(init, tree / "sbin/rig-init")
    (tree / "sbin/rig-init").chmod(0o755)
    (tree / "share").mkdir()
    rig = tree / "lib/rig"
    rig.mkdir()
    for name in MODULES:
        shutil.copy(next(kernel.glob(f"lib/modules/*/kernel/**/{name}.ko")), rig)
    (rig / "order").write_text("".join(f"{name}\n" for name in MODULES))
    packages = tree / f"usr/local/lib/python{GUEST_PYTHON}/dist-packages"
    packages.mkdir(parents=True, exist_ok=True)
    (packages / "rig.pth").write_text("".join(f"{folder}\n" for folder in PYTHON_PATH))
    run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
         "--only-binary=:all:", f"--python-version={GUEST_PYTHON}", "--target", tree / "opt/lib",
         "-r", REQUIREMENTS])  # fmt: skip


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
