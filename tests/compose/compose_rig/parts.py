"""What the engine needs: programs of Debian, and compose v2, built once from its sources."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rig.packages import SUITE, RigMissing, own_lists, run, unpack

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]
SOURCE = HERE / "build-compose"
"""A Go module that requires compose; its go.sum holds the hashes of everything that is built."""
COMPOSE = "v2.40.3"
GO_PACKAGES = ("golang-1.23-go", "golang-1.23-src")
"""Of the backports: the oldest that fetches the very toolchain that compose names, by hash."""
TOOLS = {"dockerd": "docker.io", "debootstrap": "debootstrap"}
"""Programs that must be installed, and their packages."""
LONGEST_PATH = 60
"""Characters: the engine's sockets lie below the cache, and the kernel takes 107 for the name of one."""

Say = Callable[[str], None]


def cache_folder() -> Path:
    """Where everything is kept: SUBLET_COMPOSE_CACHE, else `sublet-compose` in the user's cache folder."""
    if named := os.environ.get("SUBLET_COMPOSE_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sublet-compose"


def client_folder() -> Path:
    """The client's own folder (DOCKER_CONFIG), which holds compose as its plugin."""
    return cache_folder() / "client"


@contextmanager
def cache_held() -> Iterator[Path]:
    """The cache for one run at a time; a second one waits."""
    cache = cache_folder()
    if len(str(cache)) > LONGEST_PATH:
        raise RigMissing(f"{cache}: {len(str(cache))} characters, at most {LONGEST_PATH}: set SUBLET_COMPOSE_CACHE")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


def missing_packages() -> list[str]:
    """Debian packages without which no engine can be started here."""
    return sorted(package for tool, package in TOOLS.items() if shutil.which(tool) is None)


def require_tools() -> None:
    """Refuse a machine that cannot run the engine.

    Raises:
        RigMissing: says all that is missing.
    """
    lacks = []
    if os.geteuid() != 0:
        lacks.append("root (an engine makes namespaces, cgroups and bridges): run it with sudo")
    if packages := missing_packages():
        lacks.append(f"packages: apt-get install --no-install-recommends {' '.join(packages)}")
    if lacks:
        raise RigMissing("the container engine needs:\n" + "\n".join(f"  - {line}" for line in lacks))


def install_tools(say: Say) -> None:
    """Install what is missing, where this process may.

    Raises:
        RigMissing: it may not, or a package cannot be had.
    """
    packages = missing_packages()
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {' '.join(packages)}")
        run(["apt-get", "update", "-qq"])
        run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages])
    require_tools()


def build_compose(cache: Path, say: Say) -> None:
    """Put compose v2 where the client looks for it.

    Raises:
        RigMissing: it cannot be built; with the last words of the compiler.
    """
    folder = client_folder() / "cli-plugins"
    program, kept = folder / "docker-compose", cache / f"docker-compose-{COMPOSE}"
    if not kept.exists():
        go = _go(cache, say)
        say(f"building compose {COMPOSE} (3 min on 2 CPUs)")
        with tempfile.TemporaryDirectory(prefix=".new-", dir=cache) as place:
            built = Path(place) / "docker-compose"
            run(["env", "CGO_ENABLED=0", "GOTOOLCHAIN=auto", "GOFLAGS=-mod=readonly -buildvcs=false", "nice",
                 go, "build", "-trimpath",
                 "-ldflags", f"-s -w -X github.com/docker/compose/v2/internal.Version={COMPOSE}",
                 "-o", built, "github.com/docker/compose/v2/cmd"], cwd=SOURCE)  # fmt: skip
            built.rename(kept)
        shutil.rmtree(cache / "go", ignore_errors=True)  # nothing else needs it
    folder.mkdir(parents=True, exist_ok=True)
    program.unlink(missing_ok=True)
    program.symlink_to(kept)


def _go(cache: Path, say: Say) -> Path:
    """The Go of this machine, else one from the backports, unpacked into the cache."""
    if found := shutil.which("go"):
        return Path(found)
    folder = cache / "go"
    if not folder.exists():
        say("fetching Go")
        try:
            lists = own_lists(cache / "apt", f"{SUITE}-backports")
            with tempfile.TemporaryDirectory(prefix=".new-", dir=cache) as place:
                unpack(GO_PACKAGES, Path(place) / "go", lists=lists)
                (Path(place) / "go").rename(folder)
        except RigMissing as error:
            raise RigMissing(f"no Go to build compose with; install Go 1.21 or newer ({error})") from error
    return folder / "usr/lib/go-1.23/bin/go"
