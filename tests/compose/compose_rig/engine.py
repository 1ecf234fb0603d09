"""A container engine of the tests' own: its data, state and socket lie in the cache, and no other is touched."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rig.packages import SUITE, RigMissing, find_mirror, run, unpack
from rig_parts import Say, until
from slow_machines import patience_s

from compose_rig.parts import client_folder

START_LIMIT_S, STOP_LIMIT_S = patience_s(30.0), patience_s(60.0)
NAMESPACE = "sublet-compose"
"""In containerd, should the engine find one that runs already."""
INCLUDE = ("python3", "python3-venv", "ca-certificates")
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
WAY_FILES = (AUTHORITIES, Path("/etc/pip.conf"))
WAY_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST",
                 "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")  # fmt: skip
"""How this machine reaches the package index: a build in a container goes the same way."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine."""

    folder: Path

    @property
    def address(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.folder / 'docker.sock'}"

    def docker(self, *words: str | Path, timeout_s: float = 300.0) -> str:
        """A client command's output.

        Raises:
            EngineError: it failed; with its last words.
        """
        done = subprocess.run(
            ["docker", *map(str, words)],
            env={**os.environ, "DOCKER_HOST": self.address, "DOCKER_CONFIG": str(client_folder())},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
            raise EngineError(f"docker {' '.join(map(str, words))}: exit code {done.returncode}\n{last}")
        return done.stdout


class EngineError(Exception):
    """A command of the engine's client failed."""


@contextmanager
def running(cache: Path) -> Iterator[Engine]:
    """The engine for as long as the block lasts; it ends with this process, however that ends.

    Raises:
        RigMissing: it did not come up; with its last words.
    """
    folder = cache / "engine"
    folder.mkdir(exist_ok=True)
    _wait_for_the_last_one(folder / "dockerd.pid")
    log = folder / "dockerd.log"
    with log.open("wb") as out:
        process = subprocess.Popen(_command(folder), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    engine = Engine(folder)
    try:
        try:
            until(lambda: process.poll() is not None or _answers(engine), START_LIMIT_S, "the container engine")
        except TimeoutError as error:
            raise RigMissing(f"{error}\n{log.read_text()[-2000:]}") from error
        if process.poll() is not None:
            raise RigMissing(f"the container engine ended at its start\n{log.read_text()[-2000:]}")
        yield engine
    finally:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for place in (*folder.glob("run/netns/*"), folder / "data"):  # an engine leaves what it has mounted
            subprocess.run(["umount", place], capture_output=True, check=False)


def _wait_for_the_last_one(pid_file: Path) -> None:
    """An engine whose tests were killed takes its time to stop its containers; only one may have the folder."""
    try:
        program = Path("/proc") / pid_file.read_text().strip() / "comm"
    except FileNotFoundError:
        return
    until(lambda: not program.exists() or program.read_text() != "dockerd\n", STOP_LIMIT_S, f"the end of {program}")
    pid_file.unlink(missing_ok=True)  # its number may belong to another program now


def _command(folder: Path) -> Sequence[str]:
    # No bridge of its own: the project makes its network, builds use the machine's.
    return ["setpriv", "--pdeathsig", "TERM", "dockerd", "--data-root", str(folder / "data"),
            "--exec-root", str(folder / "run"), "--pidfile", str(folder / "dockerd.pid"),
            "--host", f"unix://{folder / 'docker.sock'}", "--bridge", "none", "--oom-score-adjust", "0",
            "--containerd-namespace", NAMESPACE, "--containerd-plugins-namespace", f"{NAMESPACE}-plugins",
            "--log-level", "warn"]  # fmt: skip


def _answers(engine: Engine) -> bool:
    try:
        engine.docker("info")
    except EngineError:
        return False
    return True


def base_image_name() -> str:
    """What the base image is called: of another content, otherwise."""
    key = hashlib.sha256(repr((SUITE, INCLUDE, sorted(_image_settings().items()), _way_files())).encode())
    return f"sublet/base:{key.hexdigest()[:12]}"


def base_image(engine: Engine, cache: Path, say: Say) -> str:
    """The name of a Debian image with Python, made where it is not there yet: no registry has to be reached.

    Raises:
        RigMissing: Debian cannot be had.
    """
    image = base_image_name()
    if not engine.docker("images", "--quiet", image):
        say("making the base image (a minute)")
        with tempfile.TemporaryDirectory(prefix=".tree-", dir=cache) as place:
            tree = Path(place) / "root"
            run(["debootstrap", "--variant=minbase", f"--include={','.join(INCLUDE)}", SUITE, tree,
                 find_mirror().address])  # fmt: skip
            for path, content in _way_files().items():
                (tree / path.relative_to("/")).write_bytes(content)
            for waste in ("var/cache/apt", "var/lib/apt/lists"):
                shutil.rmtree(tree / waste)
            packed = Path(place) / "root.tar"
            run(["tar", "-C", tree, "-cf", packed, "."])
            changes = [word for name, value in _image_settings().items() for word in ("-c", f"ENV {name}={value}")]
            engine.docker("import", *changes, packed, image)
    return image


def prometheus_image(engine: Engine, cache: Path, base: str, say: Say) -> str:
    """The name of an image with Debian's Prometheus, made where it is not there yet.

    Raises:
        RigMissing: Debian cannot be had.
    """
    image = f"sublet/prometheus-tools:{base.rpartition(':')[2]}"
    if not engine.docker("images", "--quiet", image):
        say("making the image of Prometheus")
        with tempfile.TemporaryDirectory(prefix=".prometheus-", dir=cache) as place:
            unpack(["prometheus"], Path(place) / "package")
            (Path(place) / "Dockerfile").write_text(
                f"FROM {base}\nCOPY package/usr/bin/prometheus package/usr/bin/promtool /usr/bin/\n"
            )
            engine.docker("build", "--quiet", "--tag", image, place)
    return image


def _image_settings() -> dict[str, str]:
    settings = {name: value for name in WAY_VARIABLES if (value := os.environ.get(name))}
    settings |= {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    return settings | dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE"), str(AUTHORITIES))


def _way_files() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in WAY_FILES if path.exists()}
