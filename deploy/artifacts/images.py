"""The container images with their bills of materials: of one build of a commit and base, always the same digest.

`make image` leaves them in the engine as well. The engine's client is told where to build from by the environment:
BASE names the base image, BUILD_OPTIONS further options of `docker build`.
"""

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy import wheel_backend
from deploy.artifacts import sbom
from deploy.artifacts.checkout import Checkout, ToolMissing, run, source_of
from deploy.artifacts.image_archive import write_archive

TARGETS = {"node": "sublet-node", "central": "sublet-central", "all": "sublet"}
"""What deploy/Dockerfile builds, and the name of each image."""
DEFAULT_BASE = re.compile(r"^ARG BASE=(\S+)$", re.MULTILINE)


def build(checkout: Checkout, goal: Path) -> list[Path]:
    """Build all three, leave them in the engine, and write archives and bills of materials; their files.

    Raises:
        ToolMissing: there is no container engine.
    """
    _require_engine()
    base = os.environ.get("BASE") or _default_base(checkout.folder)
    made: list[Path] = []
    for target, name in TARGETS.items():
        tag = f"{name}:{checkout.version}"
        run(["docker", "build", "--quiet", "--target", target, "--tag", tag, *_settings(checkout, base),
             "--file", checkout.folder / "deploy/Dockerfile", checkout.folder])  # fmt: skip
        archive = goal / f"{name}-{checkout.version}.image.tar"
        with tempfile.TemporaryDirectory(prefix=".image-", dir=goal) as place:
            saved = Path(place) / "saved.tar"
            run(["docker", "save", "--output", saved, tag])
            digest = write_archive(saved, archive, tag, _layers(base), checkout.epoch_s)
        run(["docker", "load", "--quiet", "--input", archive])
        bill = archive.with_name(f"{name}-{checkout.version}.cdx.json")
        bill.write_text(sbom.of_image(archive, name, checkout.version, digest, checkout.epoch_s))
        made += [archive, bill]
    return made


def _settings(checkout: Checkout, base: str) -> Sequence[str]:
    told = {"BASE": base, "VERSION": checkout.version, "REVISION": wheel_backend.revision_of(checkout.folder)}
    told["SOURCE"] = source_of(checkout.folder)
    words = [word for name, value in told.items() for word in ("--build-arg", f"{name}={value}")]
    return [*words, *shlex.split(os.environ.get("BUILD_OPTIONS", ""))]


def _require_engine() -> None:
    try:
        done = subprocess.run(["docker", "info"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ToolMissing("docker is not on this machine: images are built with Docker 20.10 or newer") from None
    if done.returncode:
        raise ToolMissing("the container engine does not answer `docker info`: start it, or name it by DOCKER_HOST=…")


def _default_base(folder: Path) -> str:
    (base,) = DEFAULT_BASE.findall((folder / "deploy/Dockerfile").read_text())
    return str(base)


def _layers(image: str) -> frozenset[str]:
    return frozenset(json.loads(run(["docker", "inspect", "--format", "{{json .RootFS.Layers}}", image])))
