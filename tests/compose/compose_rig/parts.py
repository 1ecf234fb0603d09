"""What the engine needs: programs of Debian, and compose v2, built once from its sources."""

import shutil
from pathlib import Path

from rig_parts import Needs, Say, build_with_go, fresh

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]
SOURCE = HERE / "build-compose"
"""A Go module that requires compose; its go.sum holds the hashes of everything that is built."""
COMPOSE = "v2.40.3"
ENGINE = Needs(
    name="compose",
    what="the container engine",
    why_root="an engine makes namespaces, cgroups and bridges",
    tools={"dockerd": "docker.io", "debootstrap": "debootstrap"},
)


def client_folder() -> Path:
    """The client's own folder (DOCKER_CONFIG), which holds compose as its plugin."""
    return ENGINE.cache_folder() / "client"


def build_compose(cache: Path, say: Say) -> None:
    """Put compose v2 where the client looks for it.

    Raises:
        RigMissing: it cannot be built; with the last words of the compiler.
    """
    folder = client_folder() / "cli-plugins"
    program, kept = folder / "docker-compose", cache / f"docker-compose-{COMPOSE}"
    if not kept.exists():
        say(f"building compose {COMPOSE} (3 min on 2 CPUs)")
        with fresh(kept) as place:
            words: list[str | Path] = ["-ldflags", f"-s -w -X github.com/docker/compose/v2/internal.Version={COMPOSE}",
                     "-o", place, "github.com/docker/compose/v2/cmd"]  # fmt: skip
            build_with_go(cache, say, SOURCE, words, flags="-mod=readonly")
        shutil.rmtree(cache / "go", ignore_errors=True)  # nothing else needs it
    folder.mkdir(parents=True, exist_ok=True)
    program.unlink(missing_ok=True)
    program.symlink_to(kept)
