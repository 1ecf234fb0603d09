"""What the rigs of real programs have in common: a cache that one run holds at a time, Debian's packages, and Go."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rig.packages import SUITE, RigMissing, own_lists, run, unpack
from slow_machines import patience_s

GO_PACKAGES = ("golang-1.23-go", "golang-1.23-src")
"""Of the backports: the oldest that fetches the very toolchain that a module names, by hash."""
LONGEST_PATH = 60
"""Characters: sockets lie below the cache, and the kernel takes 107 for the name of one."""

POLL_S = 0.2

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a rig needs of this machine, and where it keeps what it has built."""

    name: str
    """Of the cache: SUBLET_<NAME>_CACHE, else `sublet-<name>` in the user's cache folder."""
    what: str
    """As errors call the rig."""
    why_root: str
    tools: Mapping[str, str]
    """Programs that must be installed, and their packages."""

    def cache_folder(self) -> Path:
        """Where everything is kept."""
        if named := os.environ.get(self._variable):
            return Path(named)
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"sublet-{self.name}"

    @property
    def _variable(self) -> str:
        return f"SUBLET_{self.name.upper()}_CACHE"

    @contextmanager
    def cache_held(self) -> Iterator[Path]:
        """The cache for one run at a time; a second one waits.

        Raises:
            RigMissing: no socket could have a name below it.
        """
        cache = self.cache_folder()
        if len(str(cache)) > LONGEST_PATH:
            raise RigMissing(f"{cache}: {len(str(cache))} characters, at most {LONGEST_PATH}: set {self._variable}")
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield cache

    def missing_packages(self) -> list[str]:
        """Debian packages without which nothing can be built or started here."""
        return sorted({package for tool, package in self.tools.items() if shutil.which(tool) is None})

    def require_tools(self) -> None:
        """Refuse a machine that cannot run the rig.

        Raises:
            RigMissing: says all that is missing.
        """
        lacks = []
        if os.geteuid() != 0:
            lacks.append(f"root ({self.why_root}): run it with sudo")
        if packages := self.missing_packages():
            lacks.append(f"packages: apt-get install --no-install-recommends {' '.join(packages)}")
        if lacks:
            raise RigMissing(f"{self.what} needs:\n" + "\n".join(f"  - {line}" for line in lacks))

    def install_tools(self, say: Say) -> None:
        """Install what is missing, where this process may.

        Raises:
            RigMissing: it may not, or a package cannot be had.
        """
        packages = self.missing_packages()
        if packages and os.geteuid() == 0 and shutil.which("apt-get"):
            say(f"installing {' '.join(packages)}")
            run(["apt-get", "update", "-qq"])
            run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages])
        self.require_tools()


def until(condition: Callable[[], object], limit_s: float, what: str) -> None:
    """Wait until a condition holds.

    Args:
        condition: looked at again and again.
        limit_s: what a quiet machine may need.
        what: the condition in words.

    Raises:
        TimeoutError: it did not within the limit, a slow machine's; names what was waited for.
    """
    end = time.monotonic() + patience_s(limit_s)
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {patience_s(limit_s):g} s")
        time.sleep(POLL_S)


@contextmanager
def fresh(target: Path) -> Iterator[Path]:
    """A place to build in, which becomes `target` if all goes well and vanishes otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as folder:
        place = Path(folder) / target.name
        yield place
        place.rename(target)


def build_with_go(cache: Path, say: Say, module: Path, words: Sequence[str | Path], *, flags: str) -> None:
    """`go build` in a module's folder, without C and behind everything else that runs here.

    Raises:
        RigMissing: it cannot be built; with the last words of the compiler.
    """
    run(["env", "CGO_ENABLED=0", "GOTOOLCHAIN=auto", f"GOFLAGS=-buildvcs=false {flags}", "nice", "-n", "19",
         find_go(cache, say), "build", "-trimpath", *words], cwd=module)  # fmt: skip


def find_go(cache: Path, say: Say) -> Path:
    """The Go of this machine, else one from the backports, unpacked into the cache.

    Raises:
        RigMissing: there is neither.
    """
    if found := shutil.which("go"):
        return Path(found)
    folder = cache / "go"
    if not folder.exists():
        say("fetching Go")
        try:
            lists = own_lists(cache / "apt", f"{SUITE}-backports")
            with fresh(folder) as place:
                unpack(GO_PACKAGES, place, lists=lists)
        except RigMissing as error:
            raise RigMissing(f"no Go to build with; install Go 1.21 or newer ({error})") from error
    return folder / "usr/lib/go-1.23/bin/go"
