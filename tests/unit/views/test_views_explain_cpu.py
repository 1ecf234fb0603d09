"""The explanation of one CPU, from messages alone."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import typer
from fixture_types import Virtual
from present import present
from typer.testing import CliRunner, Result

from shared.contracts.bus.subjects import ask_subject
from shared.core.cpus.topology import Topology, UniformShape
from shared.fakes.memory_bus import MemoryBus
from sublet import ask
from sublet.commands import explain
from sublet.views.explain.brief import wrapped
from sublet.views.explain.cpu import RULES, cpu_chain
from sublet.views.explain.cpu_text import cpu_lines
from sublet.views.facts import read

TUTORIAL_NODE = Topology.uniform(
    UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2, cores_per_l3=4)
)
WHY = {"rule": "reclaim-first", "numbers": {"cpus": 48, "share": 6, "reclaim": 42}}

CPU_22 = f"""\
cpu 22 of node1  online  socket 1, NUMA node 1, core 22 with 46; L3 cache 5 of 20-23,44-47
  in pool share: 11,22-23,35,46-47 (6 CPUs: 2 on NUMA 0, 4 on NUMA 1)
  by alloc/12 applied, mode enforce, lease 10 s
    reclaim-first: cpus 48, share 6, reclaim 42
    in words: {RULES["reclaim-first"]}
  but CpuIdleMissing: this kernel has no cpu.idle
  may run default/web  shared_cores on 11,22-23,35,46-47: uses CPU 1.00, load1 1.05, memory 1.0 GiB
  because advice/7 of policy canonical (from sample/88): reclaim 42, share 6 CPUs; tenants require 1.05
    offers 42.00 cores and 180.0 GiB to reclaimed pods
    regulate: reserve_cores 4, required_cores 1.05
  newest sample/88 (period): the node uses 2.50 cores
    share: CPU 1.00, load1 1.05, memory 1.0 GiB
advisor does not answer: its part is not known"""


@pytest.fixture
def told(answers: dict[str, Any]) -> dict[str, Any]:
    """The services' answers with the machine's topology and the rule of the allocation."""
    answers["qrm"]["topology"] = [[cpu.id, cpu.numa, cpu.socket, cpu.core, cpu.l3] for cpu in TUTORIAL_NODE.cpus]
    answers["qrm"]["allocation"]["why"] = [WHY]
    return answers


def explained(answers: dict[str, Any], cpu: int) -> str:
    return "\n".join(cpu_lines(present(cpu_chain(read("node1", answers), cpu))))


def test_a_cpu_is_explained_from_its_core_to_the_sample(told: dict[str, Any]) -> None:
    document = present(cpu_chain(read("node1", told), 22))
    assert "\n".join(cpu_lines(document)) == CPU_22
    assert json.loads(json.dumps(document)) == document
    assert document["place"]["siblings"] == "46"
    assert document["pools"][0]["count_by_numa"] == {"0": 2, "1": 4}
    assert document["pods"][0]["usage"]["cpu_usage_cores"] == 1.0
    assert document["allocation"]["why"] == [WHY]


def test_without_a_topology_the_numa_node_is_known_from_the_sample(answers: dict[str, Any]) -> None:
    assert explained(answers, 22).splitlines()[0] == (
        "cpu 22 of node1  online  NUMA node 1; socket, core and siblings are not told"
    )


def test_a_cpu_in_two_pools_names_both_and_a_cpu_in_none_says_so(told: dict[str, Any]) -> None:
    told["qrm"]["allocation"]["pools"][0]["cpus"] = "0-22"
    told["qrm"]["allocation"]["pods"] = []
    text = explained(told, 21)
    assert "in pool share: 0-22" in text
    assert "in pool reclaim: 0-10" in text
    assert "no pod runs on it" in text
    assert "  in no pool\n" in explained(told, 23)


@pytest.mark.parametrize(
    ("online", "offline", "cpu", "word"),
    [
        pytest.param("0-46", "", 47, "offline", id="not among those that run"),
        pytest.param("0-47", "48-49", 48, "offline", id="switched off"),
        pytest.param("0-47", "?", 47, "online", id="a list that cannot be read"),
    ],
)
def test_a_cpu_that_is_there_but_off_is_explained_as_offline(
    told: dict[str, Any], online: str, offline: str, cpu: int, word: str
) -> None:
    told["metrics"]["sample"]["node_reading"]["online_cpus"] = online
    told["qrm"]["offline_cpus"] = offline
    assert explained(told, cpu).startswith(f"cpu {cpu} of node1  {word}  ")


@pytest.mark.parametrize("cpu", [48, 99])
def test_a_cpu_that_nobody_knows_has_no_chain(told: dict[str, Any], cpu: int) -> None:
    assert cpu_chain(read("node1", told), cpu) is None


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ("metrics", ["online or not is not known", "use is not known", "sample: not known"]),
        ("qrm", ["NUMA node 1; socket", "pool: not known", "advice: not known"]),
    ],
)
def test_what_a_silent_service_would_tell_is_said_to_be_unknown(
    told: dict[str, Any], service: str, words: list[str]
) -> None:
    text = explained(told | {service: None}, 22)
    assert all(word in text for word in [*words, f"{service} does not answer: its part is not known"])


def test_a_rule_without_words_stands_for_itself(told: dict[str, Any]) -> None:
    told["qrm"]["allocation"]["why"] = [{"rule": "by-hand", "numbers": {}}]
    text = explained(told, 22)
    assert "    by-hand\n" in text
    assert "in words" not in text


def said(answer: object, _question: bytes) -> bytes:
    return json.dumps(answer).encode()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, virtual: Virtual) -> Callable[..., Any]:
    """The command on a bus where the services give the answers set."""

    def invoke(answers: dict[str, Any], *arguments: str) -> Result:
        async def work(show: Callable[..., Any]) -> int:
            bus = MemoryBus()
            for name, answer in answers.items():
                if answer is not None:
                    await bus.serve(ask_subject("node1", name), partial(said, answer))
            code: int = await show(bus, ask.AskTarget("node1", "nats://nowhere"))
            return code

        def run(show: Callable[..., Any]) -> None:
            raise SystemExit(virtual(work(show)))

        monkeypatch.setattr(ask, "run", run)
        app = typer.Typer()
        explain.register(app)
        return CliRunner().invoke(app, list(arguments))

    return invoke


def test_the_command_prints_the_text_or_the_document(told: dict[str, Any], command: Callable[..., Any]) -> None:
    assert command(told, "cpu/22").stdout == "\n".join(wrapped(CPU_22.splitlines(), "      ")) + "\n"
    document = json.loads(command(told, "cpu/22", "-o", "json").stdout)
    assert (document["cpu"], document["online"], document["pools"][0]["pool"]) == (22, True, "share")
    assert "  runs on    CPUs" in command(told, "pod/encode").stdout
    assert "  runs on CPUs" in command(told, "pod/encode", "-o", "wide").stdout


def test_a_cpu_that_is_not_there_is_refused_with_those_that_are(
    told: dict[str, Any], command: Callable[..., Any]
) -> None:
    result = command(told, "cpu/99")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "sublet: no CPU 99 on node1; it has CPUs 0-47\n"


def test_where_nobody_tells_the_cpus_the_command_says_who_is_silent(command: Callable[..., Any]) -> None:
    result = command({}, "cpu/0")
    assert result.exit_code == ask.NOT_THERE
    assert result.stderr == (
        "sublet: the CPUs of node1 are not known: metrics, advisor, qrm did not answer; see `sublet status`\n"
    )
