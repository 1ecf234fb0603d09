"""The example consumers as programs: built once into a cache outside the checkout, started, killed, read."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples" / "consumers"
STOP_TIMEOUT_S = 20.0
LEFT_BY_BUILDS = ("node_modules", "target", "consumer")
"""What somebody's own build in the checkout leaves there."""


@dataclass(frozen=True, slots=True)
class Language:
    """One example: the folder of its name, what it needs, how it is built and run there."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    @property
    def durable(self) -> str:
        """The durable consumer that it uses in these tests."""
        return f"team-{self.name}"

    @property
    def shown(self) -> str:
        """The one command of the README."""
        command = ["python" if word == sys.executable else word for word in self.command]
        return " ".join((*self.build, "&&", *command) if self.build else command)

    @property
    def missing(self) -> list[str]:
        """The programs it needs that are not on PATH."""
        return [program for program in self.needs if shutil.which(program) is None]


LANGUAGES = (
    Language("python", (sys.executable, "consumer.py")),
    Language("go", ("./consumer",), needs=("go",), build=("go", "build", "-o", "consumer", ".")),
    Language("node", ("node", "consumer.js"), needs=("node", "npm"), build=("npm", "ci")),
    Language(
        "java", ("java", "-jar", "target/consumer.jar"), needs=("java", "mvn"), build=("mvn", "-q", "-B", "package")
    ),
    Language("shell", ("bash", "consumer.sh"), needs=("bash", "head", "sed", "sync", "tail", "timeout", "tr")),
)


def cache() -> Path:
    """Where the builds are kept."""
    return Path(os.environ.get("SUBLET_CONSUMERS_CACHE") or Path.home() / ".cache" / "sublet-consumers")


def built(language: Language) -> Path:
    """The folder of the example, ready to run; built anew when one of its files has changed."""
    source = EXAMPLES / language.name
    if not language.build:
        return source
    folder = cache() / f"{language.name}-{_fingerprint(source)}"
    if not folder.exists():
        making = folder.with_suffix(f".{os.getpid()}")
        shutil.copytree(source, making, ignore=shutil.ignore_patterns(*LEFT_BY_BUILDS))
        try:
            made = subprocess.run(language.build, check=False, cwd=making, capture_output=True, text=True)
            assert made.returncode == 0, f"{' '.join(language.build)} in {source}:\n{made.stdout}{made.stderr}"
            making.rename(folder)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return folder


def _fingerprint(source: Path) -> str:
    made = set(LEFT_BY_BUILDS)
    files = sorted(p for p in source.rglob("*") if p.is_file() and not made & set(p.relative_to(source).parts))
    content = b"".join(f"{p.relative_to(source)}\0".encode() + p.read_bytes() for p in files)
    return hashlib.sha256(content).hexdigest()[:12]


class Consumer:
    """One example at work on one file. Use as a context: no process outlives it."""

    def __init__(self, language: Language, folder: Path, *, url: str, out: Path, namespace: str) -> None:
        self.durable = language.durable
        self.out = out
        self._command = [*language.command, str(out)]
        self._folder = folder
        self._environment = os.environ | {
            "SUBLET_NATS_URL": url,
            "SUBLET_NAMESPACE": namespace,
            "SUBLET_DURABLE": self.durable,
        }
        self._words = out.with_suffix(".stderr")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it; the file may be there already."""
        with self._words.open("ab") as words:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
            )

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(STOP_TIMEOUT_S)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    @property
    def running(self) -> bool:
        """Whether it has not ended, by itself or otherwise."""
        return self._process is not None and self._process.poll() is None

    def lines(self) -> list[dict[str, Any]]:
        """What is in its file, without a line that is being written."""
        whole = self.out.read_text().rpartition("\n")[0] if self.out.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def said(self) -> str:
        """What it printed in all its lives."""
        return self._words.read_text()
