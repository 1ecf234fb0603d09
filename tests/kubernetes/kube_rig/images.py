"""The container images of the node, as archives in the cache: no registry is reached."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compose_rig.engine import Engine, base_image, base_image_name, running
from compose_rig.parts import ENGINE, PROJECT
from rig.packages import run, unpack
from rig_parts import Say, build_with_go, fresh

_PAUSE_SOURCE = """\
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	<-asked
}
"""
"""The first process of each pod: it holds the pod's namespaces until it is asked to end."""
PAUSE = f"sublet/pause:{hashlib.sha256(_PAUSE_SOURCE.encode()).hexdigest()[:12]}"

STRESS = "joedval/stress:latest"
"""As the tutorial's pods name it: Debian's program of that name, so that their YAML runs as it is printed."""

PRODUCT = "sublet:test"
NEXT, NEXT_VERSION = "sublet:next", "0.2.0"
"""What comes after this checkout: the same, under another version."""
_KEPT = "24h"
"""What a build has left may serve the next one for so long."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image and its archive."""

    name: str
    archive: Path


@dataclass(frozen=True, slots=True)
class Images:
    """What every node has."""

    base: Image
    """Debian with Python."""
    pause: Image
    stress: Image
    """Base, with the program `stress`."""

    def __iter__(self) -> Iterator[Image]:
        return iter((self.base, self.pause, self.stress))


def prepare_images(cache: Path, say: Say) -> Images:
    """Make what is not in the cache yet.

    Raises:
        RigMissing: something cannot be had.
    """
    images = Images(kept_image(cache, base_image_name()), kept_image(cache, PAUSE), kept_image(cache, STRESS))
    if not all(image.archive.exists() for image in images):
        with ENGINE.cache_held() as engine_cache, running(engine_cache) as engine:
            _save(engine, images.base, lambda: base_image(engine, engine_cache, say))
            _save(engine, images.pause, lambda: _make_pause(engine, cache, say))
            _save(engine, images.stress, lambda: _make_stress(engine, cache, base_image(engine, engine_cache, say)))
    return images


def build_product(cache: Path, say: Say) -> Image:
    """The image of this checkout, made by the file that users make it with.

    Raises:
        RigMissing: the engine does not start.
        EngineError: the image cannot be made; with the last words of the build.
    """
    image = kept_image(cache, PRODUCT)
    with ENGINE.cache_held() as engine_cache, running(engine_cache) as engine:
        base = base_image(engine, engine_cache, say)
        say("making the product's image")
        engine.docker("build", "--quiet", "--network", "host", "--build-arg", f"BASE={base}", "--tag", PRODUCT,
                      "--target", "all", "--file", PROJECT / "deploy/Dockerfile", PROJECT)  # fmt: skip
        with fresh(image.archive) as place:
            engine.docker("save", "--output", place, PRODUCT)
        engine.docker("image", "prune", "--force", "--filter", f"until={_KEPT}")
    return image


def build_next(cache: Path, say: Say) -> Image:
    """The image of the version after this checkout's, made upon the latter's.

    Raises:
        RigMissing: the engine does not start.
        EngineError: the image cannot be made; with the last words of the build.
    """
    image = kept_image(cache, NEXT)
    build = "/opt/sublet/src/shared/build.py"
    change = f"sed -i 's/^VERSION = .*/VERSION = \"{NEXT_VERSION}\"/' {build}"
    compiled = f"/opt/sublet/bin/python -m compileall -q {build}"
    with ENGINE.cache_held() as engine_cache, running(engine_cache) as engine:
        say("making the next version's image")
        with tempfile.TemporaryDirectory(prefix=".next-", dir=cache) as place:
            lines = (f"FROM {PRODUCT}", "USER 0", f"RUN {change} && {compiled}", "USER 10001:10001")
            (Path(place) / "Dockerfile").write_text("\n".join(lines))
            engine.docker("build", "--quiet", "--network", "none", "--tag", NEXT, place)
        with fresh(image.archive) as kept:
            engine.docker("save", "--output", kept, NEXT)
    return image


def scheduler_image(cache: Path, program: Path, say: Say) -> Image:
    """The image of the stock scheduler under its published name, which the chart starts by default.

    Raises:
        RigMissing: the engine does not start.
        EngineError: the image cannot be made.
    """
    image = kept_image(cache, program.name.replace("kube-scheduler-", "registry.k8s.io/kube-scheduler:"))
    if not image.archive.exists():
        with ENGINE.cache_held() as engine_cache, running(engine_cache) as engine:
            say("making the scheduler's image")
            _save(engine, image, lambda: _import_program(engine, cache, program, "kube-scheduler", image.name))
    return image


def _import_program(engine: Engine, cache: Path, program: Path, name: str, image: str) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=cache) as place:
        folder = Path(place)
        inside = folder / "usr/local/bin" / name
        inside.parent.mkdir(parents=True)
        shutil.copy(program, inside)
        run(["tar", "-C", folder, "-cf", folder / "root.tar", "usr"])
        engine.docker("import", "-c", "ENV PATH=/usr/local/bin", "-c", "USER 65535:65535", folder / "root.tar", image)


def kept_image(cache: Path, name: str) -> Image:
    """An image by its name, and where its archive lies once it is made."""
    return Image(name, cache / "images" / f"{name.replace('/', '-').replace(':', '-')}.tar")


def _save(engine: Engine, image: Image, make: Callable[[], object]) -> None:
    if not image.archive.exists():
        make()
        with fresh(image.archive) as place:
            engine.docker("save", "--output", place, image.name)


def _make_pause(engine: Engine, cache: Path, say: Say) -> None:
    say("making the pause image")
    with tempfile.TemporaryDirectory(prefix=".pause-", dir=cache) as place:
        folder = Path(place)
        (folder / "go.mod").write_text("module sublet.example/pause\n\ngo 1.21\n")
        (folder / "main.go").write_text(_PAUSE_SOURCE)
        build_with_go(cache, say, folder, ["-ldflags", "-s -w", "-o", folder / "pause", "."], flags="-mod=mod")
        run(["tar", "-C", folder, "-cf", folder / "root.tar", "pause"])
        engine.docker("import", "-c", 'ENTRYPOINT ["/pause"]', "-c", "USER 65535:65535", folder / "root.tar", PAUSE)


def _make_stress(engine: Engine, cache: Path, base: str) -> None:
    with tempfile.TemporaryDirectory(prefix=".stress-", dir=cache) as place:
        folder = Path(place)
        unpack(["stress"], folder / "package")
        (folder / "Dockerfile").write_text(f"FROM {base}\nCOPY package/usr/bin/stress /usr/bin/stress\n")
        engine.docker("build", "--quiet", "--tag", STRESS, folder)
