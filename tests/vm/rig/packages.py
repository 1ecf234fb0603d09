"""Debian packages, unpacked into a folder without being installed, from the mirror that this machine itself uses."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUITE = "bookworm"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class RigMissing(Exception):
    """The emulated machine cannot be built or started here; the text says what is missing and what to do."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """Where this machine gets its Debian packages."""

    address: str
    keyring: str


def find_mirror(apt_folder: Path = Path("/etc/apt")) -> Mirror:
    """The mirror of the guest's release in this machine's own lists of sources.

    Raises:
        RigMissing: there is none.
    """
    for address, keyring, suites in _sources(apt_folder):
        if SUITE in suites:
            return Mirror(address, keyring or str(_KEYRING))
    raise RigMissing(f"no source of Debian {SUITE} in {apt_folder}/sources.list or sources.list.d: add one")


def _sources(apt_folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Address, keyring and suites of every binary source, in either of apt's two spellings."""
    folder = apt_folder / "sources.list.d"
    for path in sorted(folder.glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            fields = dict(re.findall(r"(?m)^([\w-]+):[ \t]*(.*)$", stanza))
            if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes") != "no":
                for address in fields.get("URIs", "").split():
                    yield address, fields.get("Signed-By", ""), fields.get("Suites", "").split()
    for path in (apt_folder / "sources.list", *sorted(folder.glob("*.list"))):
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            if found := re.match(r"deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)", line):
                options = dict(word.split("=", 1) for word in (found[1] or "").split() if "=" in word)
                yield found[2], options.get("signed-by", ""), [found[3]]


def run(words: Sequence[str | Path], *, cwd: Path | None = None) -> str:
    """A command's output.

    Raises:
        RigMissing: it failed; with its last words.
    """
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise RigMissing(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{last}")
    return done.stdout


def unpack(names: Sequence[str], into: Path, *, lists: Path | None = None) -> None:
    """Fetch packages and unpack them; `lists` names a folder of package lists from `own_lists` instead of this
    machine's.

    Raises:
        RigMissing: a package cannot be had.
    """
    into.mkdir(parents=True)
    options = ["-o", "APT::Sandbox::User=root", *(_own(lists) if lists else [])]
    run(["apt-get", "-qq", *options, "download", *names], cwd=into)
    for deb in sorted(into.glob("*.deb")):
        run(["dpkg", "-x", deb, into])
        deb.unlink()


def own_lists(folder: Path, suite: str) -> Path:
    """Package lists of another suite of the same mirror, beside this machine's own, which stay as they are.

    Raises:
        RigMissing: the suite cannot be had.
    """
    mirror = find_mirror()
    (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(f"deb [signed-by={mirror.keyring}] {mirror.address} {suite} main\n")
    run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", *_own(folder), "update"])
    return folder


def _own(folder: Path) -> list[str]:
    settings = {"SourceList": folder / "sources.list", "SourceParts": "/dev/null"}
    words = [f"Dir::Etc::{name}={value}" for name, value in settings.items()]
    words += [f"Dir::State::Lists={folder / 'lists'}", "Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache="]
    return [item for word in words for item in ("-o", word)]
