"""A Debian package for one host: an environment of its own below /usr/lib/sublet, a systemd unit, what shells complete.

It holds the pinned requirements as their wheels: it is of one machine type and one Python version, which it asks for.
"""

import compileall
import gzip
import os
import py_compile
import shutil
import sys
import tempfile
from pathlib import Path

from deploy.artifacts import distributions, share
from deploy.artifacts.checkout import Checkout, ToolMissing, run

FILES = Path(__file__).parents[1] / "debian"
HOME = "usr/lib/sublet"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NEXT_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor + 1}"
REQUIREMENTS = "requirements/run.txt"
"""What one host needs; the client of a cluster is five times as large as all of it."""


def build(checkout: Checkout, goal: Path) -> list[Path]:
    """Build it; its file.

    Raises:
        ToolMissing: this is no Debian.
    """
    if shutil.which("dpkg-deb") is None:
        raise ToolMissing("dpkg-deb is not on this machine: a Debian package is built on Debian, or with its dpkg")
    machine = run(["dpkg", "--print-architecture"]).strip()
    with tempfile.TemporaryDirectory(prefix="sublet-deb-") as place:
        root = Path(place) / "root"
        _install(checkout, Path(place), root / HOME)
        _add_files(checkout, root, machine)
        package = goal / f"sublet_{_version(checkout)}_{machine}.deb"
        env = {**os.environ, "SOURCE_DATE_EPOCH": str(checkout.epoch_s)}
        _date(root, checkout.epoch_s)
        run(["dpkg-deb", "--root-owner-group", "-Zzstd", "--threads-max=1", "--build", root, package], env=env)
    return [package]


def _version(checkout: Checkout) -> str:
    """To Debian 1.0.0~rc.1 comes before 1.0.0."""
    return checkout.version.replace("-", "~")


def _install(checkout: Checkout, place: Path, home: Path) -> None:
    """Make the environment at `home` as it will be at its place: no path of this machine is in it."""
    wheels = place / "wheels"
    wheels.mkdir()
    wheel, _ = distributions.build(checkout, wheels)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--no-compile", "--no-warn-script-location", "--root-user-action=ignore", "--ignore-installed",
           "--prefix", home]  # fmt: skip
    run([*pip, "--require-hashes", "--only-binary=:all:", "-r", checkout.folder / REQUIREMENTS])
    run([*pip, "--no-deps", "--no-index", wheel])
    packages = home / f"lib/python{PYTHON}/site-packages"
    _forget_this_machine(home, packages)
    (home / "bin/python").symlink_to(f"/usr/bin/python{PYTHON}")
    (home / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n")
    _compile(packages, Path("/") / HOME / packages.relative_to(home))


def _forget_this_machine(home: Path, packages: Path) -> None:
    """Take away scripts, whose first lines name this machine's Python, and where the wheel lay; programs stay."""
    scripts = [path for path in (home / "bin").iterdir() if path.read_bytes().startswith(b"#!")]
    gone = {f"../../../bin/{path.name}" for path in scripts}
    told = list(packages.glob("*.dist-info/direct_url.json"))
    gone |= {path.relative_to(packages).as_posix() for path in told}
    for path in (*scripts, *told):
        path.unlink()
    for record in packages.glob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if line.partition(",")[0] not in gone))


def _compile(packages: Path, installed_at: Path) -> None:
    """Compile in one process, with hashes of the sources in place of their times."""
    compileall.compile_dir(
        packages, stripdir=str(packages), prependdir=str(installed_at), quiet=2, workers=1,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )  # fmt: skip


def _add_files(checkout: Checkout, root: Path, machine: str) -> None:
    share.write(checkout, root / "usr/share")
    for source, place, mode in (
        ("program.py", "usr/bin/sublet", 0o755),
        ("sublet.service", "usr/lib/systemd/system/sublet.service", 0o644),
        ("sublet.default", "etc/default/sublet", 0o644),
        ("copyright", "usr/share/doc/sublet/copyright", 0o644),
        ("postinst", "DEBIAN/postinst", 0o755),
        ("prerm", "DEBIAN/prerm", 0o755),
        ("postrm", "DEBIAN/postrm", 0o755),
        ("conffiles", "DEBIAN/conffiles", 0o644),
    ):
        goal = root / place
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(FILES / source, goal)
        goal.chmod(mode)
    changes = gzip.compress((checkout.folder / "CHANGELOG.md").read_bytes(), mtime=checkout.epoch_s)
    (root / "usr/share/doc/sublet/changelog.gz").write_bytes(changes)
    control = (FILES / "control").read_text()
    given = {
        "version": _version(checkout), "machine": machine, "size": installed_kib(root),
        "python": PYTHON, "next": NEXT_PYTHON,
    }  # fmt: skip
    (root / "DEBIAN/control").write_text(control.format(**given))


def installed_kib(root: Path) -> int:
    """Add up a package's files, each in whole KiB, and 1 KiB for all else (Debian Policy 5.6.20).

    The size of a folder itself depends on the file system and on the names that files in it had for a moment: two
    builds would differ by it.
    """
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    others = sum(1 for _ in root.rglob("*")) - len(files)
    return others + sum(-(-path.stat().st_size // 1024) for path in files)


def _date(root: Path, epoch_s: int) -> None:
    """Give all the same time and the usual rights, whatever the umask here."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (epoch_s, epoch_s), follow_symlinks=False)
