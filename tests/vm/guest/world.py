"""Sublet inside the guest: start it, run its commands, put load into a pod, and read what the kernel grants."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SHARE = Path("/share")
OUT = SHARE / "out"
STATE = Path("/run/sublet")
"""In memory: the emulated disk is slow, and nothing of the guest is kept."""
DYNAMIC = Path("/run/dynamic.yaml")
CGROUPS = Path("/sys/fs/cgroup/sublet")
PODS = SHARE / "guest/pods"
PRODUCT = Path("/run/product")

UP_LIMIT_S = 900.0
DOWN_LIMIT_S = 120.0
COMMAND_LIMIT_S = 400.0
SLOWEST = 6.0
"""The stories' limits are those of an idle host; others may use it."""
_POLL_S = 0.5
_POOLS = {"shared_cores": "share", "reclaimed_cores": "reclaim"}
_CPU_MILLIS = "katalyst.kubewharf.io/reclaimed_millicpu"


class Broken(Exception):
    """The story cannot go on."""


class World:
    """One run of Sublet, and a report of what was seen, which is written even when the story breaks."""

    def __init__(self) -> None:
        self.report: dict[str, Any] = {"seen": {}, "took_s": {}}
        self._up: subprocess.Popen[bytes] | None = None
        self._load: list[subprocess.Popen[bytes]] = []

    def tell(self, story: Callable[["World"], None]) -> int:
        """Play a story; returns the exit code."""
        broken = True
        try:
            with self._timed("up"):
                self._start()
            story(self)
            self._keep_logs()  # the product takes them away
            with self._timed("down"):
                self._stop()
            broken = False
        except Broken as problem:
            self.report["broken"] = str(problem)
        finally:
            if broken:
                self.report["last"] = self.seen()
                self._keep_logs()
            (OUT / "report.json").write_text(json.dumps(self.report, indent=1))
        return int(broken)

    def _start(self) -> None:
        # The tutorial's figures are those of young tenants, and an emulated machine may need long for its story.
        young = {"policies": {"adaptive": {"cold_start_s": 86_400}}}
        settings = {"central": {"config_file": str(DYNAMIC)}, "advisor": young}
        file = Path("/run/settings.yaml")
        file.write_text(json.dumps(settings))
        os.environ.update(SUBLET_CONFIG=str(file), SUBLET_STATE_DIR=str(STATE), SUBLET_NODE="guest",
                          SUBLET_CONNECT_TIMEOUT_S="200")  # fmt: skip
        said = OUT / "up.txt"
        with said.open("wb") as log:
            words = [sys.executable, str(Path(__file__).with_name("patient.py")), "up"]
            self._up = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self._until("sublet up", lambda: "Sublet is up" in said.read_text(), UP_LIMIT_S)
        except Broken as problem:
            raise Broken(f"{problem}: {said.read_text()}") from problem

    def _stop(self) -> None:
        if self._up is None:
            return
        self._up.terminate()
        try:
            self.report["up_code"] = self._up.wait(DOWN_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise Broken(f"sublet up did not end within {DOWN_LIMIT_S:.0f} s") from error
        self.report["left"] = sorted(str(path) for path in CGROUPS.parent.glob("sublet*"))

    def _keep_logs(self) -> None:
        for log in (*STATE.glob("logs/*.log"), *STATE.glob("pods/*/shim.log")):
            name = log.name if log.parent.name == "logs" else f"{log.parent.name}-{log.name}"
            (OUT / name).write_bytes(log.read_bytes()[-200_000:])

    def sublet(self, *words: str) -> str:
        """What a command of the product prints.

        Raises:
            Broken: it failed.
        """
        done = subprocess.run([*_COMMAND, *words], capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
        if done.returncode:
            raise Broken(f"sublet {' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def says(self, wanted: str, *words: str, limit_s: float = 60.0) -> str:
        """What a command prints, once it says `wanted`: the command is work on a slow machine, and the offer follows.

        Raises:
            Broken: it failed, or does not say so in time.
        """
        told: list[str] = []

        def reached() -> bool:
            told.append(self.sublet(*words))
            return wanted in told[-1]

        self._until(f"sublet {' '.join(words)}: {wanted}", reached, limit_s * SLOWEST)
        return told[-1]

    def apply(self, *files: str) -> None:
        """`sublet apply` of some of the stories' files at once."""
        documents = Path("/run/apply.yaml")
        documents.write_text("\n---\n".join((PODS / file).read_text() for file in files))
        self.sublet("apply", "-f", str(documents))

    def execute(self, pod: str, *command: str) -> None:
        """As `kubectl exec`: one more command in the pod's container."""
        group = self._container(pod)
        if group is None:
            raise Broken(f"pod {pod} has no cgroup")
        enter = 'echo $$ >"$0" && exec "$@"'
        words = ["/bin/sh", "-c", enter, str(group / "cgroup.procs"), *command]
        self._load.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))

    def configure(self, sections: Mapping[str, Any]) -> None:
        """Give central another configuration for all services, as a file replaced whole."""
        fresh = DYNAMIC.with_suffix(".new")
        fresh.write_text(json.dumps(sections))
        fresh.replace(DYNAMIC)

    def settle(self, step: str, limit_s: float, **wanted: object) -> None:
        """Wait until all of `wanted` is seen, and take down what is seen then.

        Raises:
            Broken: it is not, after `limit_s`, or six times that where others use the host.
        """
        view: dict[str, Any] = {}

        def reached() -> bool:
            view.clear()
            view.update(self.seen())
            # A pool's group is written before or after its pods': a look in between is no answer.
            settled = all(view[pod]["cpus"] == view[view[pod]["pool"]] for pod in view["pods"] if pod in view)
            return settled and wanted.items() <= view.items()

        with self._timed(step):
            self._until(f"{step}: {wanted}", reached, limit_s * SLOWEST)
        self.report["seen"][step] = view

    def stays(self, step: str, for_s: float, **wanted: object) -> None:
        """Look for a while whether all of `wanted` holds at every look.

        Raises:
            Broken: it does not.
        """
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            seen = self.seen()
            if not wanted.items() <= seen.items():
                raise Broken(f"{step}: {wanted} did not last: {seen}")
            time.sleep(_POLL_S)
        self.report["seen"][step] = self.seen()

    def events(self) -> list[dict[str, Any]]:
        """All eviction events so far."""
        return [json.loads(line) for line in self.sublet("events", "-o", "json").splitlines() if line]

    def seen(self) -> dict[str, Any]:
        """The kernel's words on the pools and on each pod, the running pods, and the node's object."""
        view: dict[str, Any] = {"millicpu": _offered(), "pods": self._pods()}
        for qos, pool in _POOLS.items():
            group = CGROUPS / qos
            view[pool] = _text(group / "cpuset.cpus")
            view[f"{pool}_effective"] = _text(group / "cpuset.cpus.effective")
        for pod in view["pods"]:
            if container := self._container(pod):
                tasks = _text(container / "cgroup.procs").split()
                view[pod] = {
                    "cpus": _text(container / "cpuset.cpus"),
                    "effective": _text(container / "cpuset.cpus.effective"),
                    "pool": _POOLS[container.parent.parent.name],
                    "tasks": sorted({_allowed(pid) for pid in tasks} - {""}),
                }
        return view

    def _pods(self) -> list[str]:
        return sorted(record["pod"]["name"] for record in _records() if self._group(record).is_dir())

    def _container(self, pod: str) -> Path | None:
        """The cgroup of a pod's first container."""
        for record in _records():
            if record["pod"]["name"] == pod and self._group(record).is_dir():
                return self._group(record) / str(record["pod"]["containers"][0]["name"])
        return None

    @staticmethod
    def _group(record: Mapping[str, Any]) -> Path:
        pod = record["pod"]
        return CGROUPS / str(pod["qos"]) / f"pod{pod['uid']}"

    def _until(self, what: str, condition: Callable[[], bool], limit_s: float) -> None:
        end = time.monotonic() + limit_s
        while not condition():
            if self._up is not None and self._up.poll() is not None:
                raise Broken(f"{what}: sublet up ended with {self._up.returncode}")
            if time.monotonic() > end:
                raise Broken(f"{what}: not within {limit_s:.0f} s; seen: {self.seen()}")
            time.sleep(_POLL_S)

    def _timed(self, step: str) -> "_Timed":
        return _Timed(self.report["took_s"], step)


class _Timed:
    def __init__(self, times: dict[str, float], step: str) -> None:
        self._times, self._step = times, step

    def __enter__(self) -> None:
        self._at = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._times[self._step] = round(time.monotonic() - self._at, 1)


_COMMAND = (sys.executable, "-m", "sublet")


def _records() -> list[dict[str, Any]]:
    """The pods in the product's store."""
    found = []
    for path in sorted(STATE.glob("pods/*/pod.json")):
        try:
            found.append(json.loads(path.read_text()))
        except (OSError, ValueError):  # being written, or just gone
            continue
    return found


def _offered() -> str | None:
    try:
        return str(json.loads((STATE / "cnr.json").read_text())["status"]["resourceAllocatable"][_CPU_MILLIS])
    except (OSError, ValueError, KeyError):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _allowed(pid: str) -> str:
    lines = _text(Path("/proc") / pid / "status").splitlines()
    return next((line.split()[1] for line in lines if line.startswith("Cpus_allowed_list:")), "")
