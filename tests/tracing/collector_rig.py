"""`python -m collector_rig`: build the OpenTelemetry Collector, pinned by its go.sum, and keep it."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rig.packages import RigMissing
from rig_parts import Needs, Say, build_with_go, fresh, until
from slow_machines import patience_s

SOURCE = Path(__file__).parent / "collector"
COLLECTOR = Needs("tracing", "the collector of traces", "nothing: it runs as anybody", {})
PATIENCE_S = patience_s(30.0)
CONFIG = """\
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}}}
"""


def build(cache: Path, say: Say) -> Path:
    """Return the collector, built from its source if this very source was not built before.

    Raises:
        RigMissing: it cannot be built; with the last words of the compiler.
    """
    what = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")))
    program = cache / f"collector-{what.hexdigest()[:12]}"
    if not program.exists():
        say("building the OpenTelemetry Collector (2 min on 2 CPUs)")
        with fresh(program) as place:
            build_with_go(cache, say, SOURCE, ["-ldflags", "-s -w", "-o", place, "."], flags="-mod=readonly")
    return program


@dataclass(frozen=True, slots=True)
class Span:
    """A span as the collector received it."""

    trace_id: str
    id: str
    parent_id: str
    name: str
    service: str
    attributes: dict[str, str] = field(default_factory=dict)


class Collector:
    """A running collector, and what it has received."""

    def __init__(self, program: Path, folder: Path, port: int) -> None:
        self.endpoint, self._said = f"http://127.0.0.1:{port}/v1/traces", folder / "collector.log"
        config = folder / "collector.yaml"
        config.write_text(CONFIG.format(port=port))
        with self._said.open("wb") as log:
            self._process = subprocess.Popen([program, f"--config=file:{config}"], stdout=log, stderr=log)
        until(lambda: "Everything is ready" in self._said.read_text(), PATIENCE_S, f"the collector on port {port}")

    def spans(self) -> Sequence[Span]:
        """What has come by now."""
        return list(_spans(self._said.read_text()))

    def end(self) -> None:
        """End it, and wait for that."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)


def _spans(said: str) -> Iterator[Span]:
    """Read the words of the debug exporter: a resource with its attributes, then its spans with theirs."""
    for resource in said.split("ResourceSpans #")[1:]:
        head, *spans = re.split(r"\nSpan #\d+\n", resource)
        service = _attributes(head)["service.name"]
        for text in spans:
            facts = dict(re.findall(r"^    (Trace ID|Parent ID|ID|Name) *: ?(.*)$", text, re.MULTILINE))
            own = text.partition("\nEvents:")[0]
            yield Span(facts["Trace ID"], facts["ID"], facts["Parent ID"], facts["Name"], service, _attributes(own))


def _attributes(text: str) -> dict[str, str]:
    return dict(re.findall(r"^ +-> ([\w.]+): \w+\((.*)\)$", text, re.MULTILINE))


@contextmanager
def running(folder: Path, port: int) -> Iterator[Collector]:
    """A collector that listens on a port of this host.

    Raises:
        RigMissing: it cannot be built.
    """
    with COLLECTOR.cache_held() as cache:
        program = build(cache, print)
    collector = Collector(program, folder, port)
    try:
        yield collector
    finally:
        collector.end()


if __name__ == "__main__":
    try:
        with COLLECTOR.cache_held() as cache:
            print(f"ready: {build(cache, print)}")
    except RigMissing as error:
        sys.exit(f"collector: {error}")
