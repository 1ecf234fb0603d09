"""The wheel is the product: in an environment of its own every command works, whatever lies in the working folder."""

import asyncio
import json
import re
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest
from clean_environment import PIP, ROOT, Environment, build_wheel
from packaging.requirements import Requirement
from slow_machines import patience_s

from sublet import cli
from sublet.exit_codes import FAILED, NOT_THERE, OK, REFUSED

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(600)]

LISTED = """
import json, typer
from shared.core.scan import modules_in
from sublet import cli, commands
def names(group, before=()):
    for name, below in group.commands.items():
        yield [*before, name]
        if hasattr(below, "commands"):
            yield from names(below, [*before, name])
print(json.dumps(list(names(typer.main.get_command(cli.build(modules_in(commands)))))))
"""
TRACE = ROOT / "examples/traces/web-and-batch.jsonl.gz"
CALLS = [
    ("--version", OK, "sublet"),
    ("whatif --list", OK, "cpu"),
    (f"replay {TRACE} --policy canonical -o json", OK, "canonical"),
    ("sim", OK, "everything happened as the scenario says"),
    ("config show", NOT_THERE, "no NATS server"),
    ("status", NOT_THERE, "no NATS server"),
    ("events", NOT_THERE, "no NATS server"),
    ("explain cpu/0", NOT_THERE, "no NATS server"),
    ("apply -f nope.yaml", REFUSED, "nope.yaml"),
]
START_TIMEOUT_S = patience_s(200.0)
CLUSTER = ("status --cluster", "get cnr --cluster", "doctor --cluster")


def outcome(environment: Environment, typed: str, code: int, words: str) -> None:
    """Run a line and compare its end and what it says."""
    done = environment.sublet(*typed.split())
    said = done.stdout + done.stderr
    assert (done.returncode, "Traceback" in said) == (code, False), said
    assert words in said


@pytest.fixture(scope="module")
def lines(plain: Environment) -> list[list[str]]:
    """Every command and command of a group."""
    script = LISTED.replace("from shared", "from sublet._shared")
    listed: list[list[str]] = json.loads(plain.python("-P", "-c", script))
    return listed


def test_each_requirement_has_a_floor_that_is_what_the_tests_use(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(packed.read(name).decode())
    assert metadata.get_all("Provides-Extra") == ["authors", "kube", "trace"]
    text = (ROOT / "requirements/dev.txt").read_text()
    found = re.finditer(r"^([a-zA-Z0-9-]+)==(\S+)", text, re.MULTILINE)
    pinned: dict[str, str] = {match[1]: match[2] for match in found}
    asked = [Requirement(text) for text in metadata.get_all("Requires-Dist") or []]
    assert len(asked) >= 12
    for requirement in asked:
        (bound,) = requirement.specifier
        assert bound.operator in (">=", "=="), f"{requirement} has no floor"
        assert bound.version == pinned[requirement.name.lower()], f"{requirement}: the tests use another version"


def test_the_installation_is_whole(plain: Environment, full: Environment) -> None:
    for environment in (plain, full):
        assert "No broken requirements" in environment.python("-m", "pip", "check")


def test_every_command_explains_itself(plain: Environment, lines: list[list[str]]) -> None:
    assert {line[0] for line in lines} >= set(cli.ORDER)
    for line in lines:
        outcome(plain, " ".join([*line, "--help"]), OK, f"Usage: sublet {' '.join(line)}")


@pytest.mark.parametrize(("typed", "code", "words"), CALLS)
def test_a_command_does_what_it_says_or_says_why_not(plain: Environment, typed: str, code: int, words: str) -> None:
    outcome(plain, typed, code, words)


@pytest.mark.parametrize("typed", CLUSTER)
def test_without_the_extra_a_command_about_a_cluster_names_it(plain: Environment, typed: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.touch()
    outcome(plain, f"{typed} --kubeconfig {kubeconfig}", FAILED, "pip install 'sublet[kube]'")


@pytest.mark.parametrize("typed", CLUSTER)
def test_with_the_extra_it_asks_for_a_cluster(full: Environment, typed: str) -> None:
    done = full.sublet(*typed.split())
    said = done.stdout + done.stderr
    assert done.returncode in (FAILED, REFUSED, NOT_THERE), said
    assert "sublet[kube]" not in said
    assert "kubeconfig" in said.lower()
    assert "Traceback" not in said


def test_without_the_extra_tracing_names_it(plain: Environment) -> None:
    asked = {"SUBLET_OTLP_ENDPOINT": "http://127.0.0.1:9/v1/traces", "SUBLET_NATS_URL": "nats://127.0.0.1:9"}
    traced = Environment(plain.folder, plain.working, {**plain.env, **asked})
    done = traced.sublet("node")
    assert "sublet[trace]" in done.stdout + done.stderr
    assert done.returncode != OK


EXTENSIONS = ("policy", "plugin")


@pytest.mark.parametrize("noun", EXTENSIONS)
def test_a_new_extension_holds_its_laws_without_a_checkout_and_is_found_once_installed(
    full: Environment, noun: str, tmp_path: Path
) -> None:
    module = tmp_path / f"sublet-{noun}-mine/sublet_{noun}_mine.py"
    outcome(full, f"{noun} new mine --in {tmp_path}", OK, f"sublet {noun} test {module}")
    outcome(full, f"{noun} test {module}", OK, "laws hold")
    assert {path.name for path in module.parent.iterdir()} == {"pyproject.toml", module.name}
    full.python(*PIP, "install", "--no-deps", "--no-index", str(build_wheel(tmp_path, module.parent)))
    outcome(full, f"{noun} test mine", OK, "laws hold")
    assert {path.name for path in full.working.iterdir()} == {"services", "shared"}


@pytest.mark.parametrize("noun", EXTENSIONS)
def test_without_the_extra_an_extension_is_started_and_its_test_names_it(
    plain: Environment, noun: str, tmp_path: Path
) -> None:
    outcome(plain, f"{noun} new mine --in {tmp_path}", OK, "that works")
    outcome(plain, f"{noun} test template", FAILED, "pip install 'sublet[authors]'")


@pytest.fixture
def running(plain: Environment, tmp_path: Path) -> Iterator[Environment]:
    """A simulated machine that runs; it is ended as a service's supervisor would end it."""
    env = {**plain.env, "SUBLET_STATE_DIR": str(tmp_path / "state"), "SUBLET_SUBSTRATE": "sim"}
    here = Environment(plain.folder, plain.working, env)
    with (tmp_path / "up.log").open("w") as log:
        up = subprocess.Popen(
            [str(plain.folder / "bin/sublet"), "up", "--substrate", "sim", "--nats-port", "0"],
            cwd=plain.working, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield here
    finally:
        up.send_signal(signal.SIGTERM)
        ended = up.wait(patience_s(60))
    assert ended == OK, (tmp_path / "up.log").read_text()


async def test_a_simulated_machine_lives_beside_folders_of_the_old_names(running: Environment) -> None:
    async with asyncio.timeout(START_TIMEOUT_S):
        while running.sublet("status").returncode != OK:
            await asyncio.sleep(0.5)
    for line in (
        "get cnr -o json",
        "get pods",
        "events",
        "audit",
        "explain cpu/0",
        "config show",
        "pause -r test",
        "resume",
    ):
        done = running.sublet(*line.split())
        assert (line, done.returncode) == (line, OK), done.stdout + done.stderr
    logs = Path(running.env["SUBLET_STATE_DIR"]) / "logs"
    assert not [path.name for path in logs.iterdir() if "Traceback" in path.read_text()]
    assert {path.name for path in running.working.iterdir()} == {"services", "shared"}
