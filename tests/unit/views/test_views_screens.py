"""What the viewing commands print, at a fixed width."""

import asyncio
import io
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from present import present
from rich.console import Console, RenderableType

from sublet.ask import Answers, AskTarget
from sublet.commands import status as status_command
from sublet.commands import top as top_command
from sublet.views import figures, status, top, usage
from sublet.views.explain.chain import chain
from sublet.views.explain.chain_text import lines
from sublet.views.facts import read

STATUS = """\
node1  not ready, configuration refused  mode enforce  Sublet 0.1.0  up 2h5m  3 evicted in 1h
alloc/12 applied, lease 10 s, policy canonical

NUMA 0   0-11  RRRRRRRR RRRS
        24-35  RRRRRRRR RRRS
NUMA 1  12-23  RRRRRRRR RRSS
        36-47  RRRRRRRR RRSS
S share   R reclaim

POOL      CPUS                     COUNT   CPU USED   OF ITS CPUS   LOAD1    MEMORY
share     11,22-23,35,46-47            6       1.00   #....  17%     1.05   1.0 GiB
reclaim   0-10,12-21,24-34,36-45      42       1.25   .....   3%        -         -

Reclaimed   CPU 42.00 offered, 2.00 requested, 1.25 used
            memory 180.0 GiB offered, 1.0 GiB requested, - used
Pods        1 shared_cores, 1 reclaimed_cores; each of them: sublet top
Services    metrics   ok, input 0.2 s old
            advisor   does not answer: silent for more than 10 s (log: /run/sublet/logs/advisor.log)
            qrm       ok, input 1.5 s old
            evictor   not ok: no allocation received yet
            reporter  ok
            central   ok
Conditions  CpuIdleMissing: this kernel has no cpu.idle
            MemoryPressure: NoSchedule by memory
            ConfigRefused: no section 'evicter'
Taints      node.katalyst.kubewharf.io/MemoryPressure:NoSchedule since 2023-01-09T06:32:08Z (memory,
            memory: observed 1024, threshold 2048)
Evictions   default/gone succeeded: reclaimed-resource-pressure-eviction-plugin,
            katalyst.kubewharf.io/reclaimed_millicpu, observed 36.00 cores, threshold 20.00 cores
"""

TOP = """\
node1  CPU 2.50  load1 2.75  memory 190.0 GiB of 200.0 GiB available

NUMA 0   0-11  RRRRRRRR RRRS
        24-35  RRRRRRRR RRRS
NUMA 1  12-23  RRRRRRRR RRSS
        36-47  RRRRRRRR RRSS
S share   R reclaim

POOL / POD         CPUS                     COUNT   CPU USED   OF ITS CPUS   LOAD1    MEMORY
share              11,22-23,35,46-47            6       1.00   #....  17%     1.05   1.0 GiB
  default/web      11,22-23,35,46-47            6       1.00   #....  17%     1.05   1.0 GiB
reclaim            0-10,12-21,24-34,36-45      42       1.25   .....   3%        -         -
  default/encode   0-10,12-21                  21       1.25   .....   6%        -         -
advisor does not answer
"""


def shown(renderable: RenderableType, width: int = 100) -> str:
    """The screen without the spaces at the ends of its lines."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(renderable)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def test_the_status_screen(answers: dict[str, Any]) -> None:
    logs = {"advisor": "/run/sublet/logs/advisor.log", "qrm": "/run/sublet/logs/qrm.log"}
    assert shown(status.render(read("node1", answers), logs)) == STATUS


def test_a_node_that_observes_says_so_on_every_screen(answers: dict[str, Any]) -> None:
    answers["reporter"]["mode"] = "observe"
    facts = read("node1", answers)
    assert "observe: nothing is changed" in shown(status.render(facts)).splitlines()[0]
    assert status.as_json(facts)["node_mode"] == "observe"
    explained = "\n".join(lines(present(chain(facts, [], "default", "encode"))))
    assert "observe: nothing is changed on this node" in explained
    answers["reporter"]["mode"] = "something else"
    assert status.as_json(read("node1", answers))["node_mode"] is None


def test_a_wide_status_shows_each_pod_below_its_pool(answers: dict[str, Any]) -> None:
    pools = TOP[TOP.index("POOL / POD") : TOP.index("advisor does not")]
    assert pools in shown(status.render(read("node1", answers), wide=True))


def test_on_a_narrow_terminal_only_lists_of_cpus_are_folded(answers: dict[str, Any]) -> None:
    lines = shown(top.render(read("node1", answers)), width=80).splitlines()
    assert [line for line in lines if line.startswith("  default/encode") and line.endswith("-")]
    assert all(len(line) <= 80 for line in lines)


def test_an_application_that_is_not_measured_is_a_condition(answers: dict[str, Any]) -> None:
    listed = [{"name": "nginx"}, {"name": "yarn", "unmeasured": "no cgroup y on this node"}]
    answers["metrics"]["sample"]["host_applications"] = listed
    facts = read("node1", answers)
    assert "HostApplicationUnmeasured: yarn: no cgroup y on this node" in " ".join(
        shown(status.render(facts), 200).split()
    )
    assert {"type": "HostApplicationUnmeasured", "message": "yarn: no cgroup y on this node"} in (
        status.as_json(facts)["conditions"]
    )


def test_cycles_per_instruction_have_a_column_where_they_are_counted(answers: dict[str, Any]) -> None:
    assert "CPI" not in shown(top.render(read("node1", answers)))
    pools = answers["metrics"]["sample"]["pools"]
    next(pool for pool in pools if pool["pool"] == "share").setdefault("extra", {})["cpi"] = 1.234
    lines = shown(top.render(read("node1", answers)), width=120).splitlines()
    assert next(line for line in lines if line.startswith("POOL / POD")).endswith("CPI")
    assert [line.split()[-1] for line in lines if line.split()[:1] in (["share"], ["reclaim"])] == ["1.23", "-"]


def test_counters_without_figures_are_a_condition(answers: dict[str, Any]) -> None:
    answers["metrics"]["sample"]["counters_unmeasured"] = "no program perf"
    found = status.as_json(read("node1", answers))["conditions"]
    assert {"type": "CountersUnmeasured", "message": "no program perf"} in found


@pytest.mark.parametrize("command", ["status", "top"])
def test_in_a_pipe_no_line_is_folded(
    command: str, answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "this kernel has no cpu.idle, " + "so that batch pods take turns with all others, " * 9 + "as before"
    answers["qrm"]["allocation"]["conditions"] = [{"type": "CpuIdleMissing", "message": why}]
    answers["qrm"]["allocation"]["pools"][0]["cpus"] = listed = ",".join(map(str, range(1, 200, 2)))

    async def ask_all(_bus: object, _node: str, _services: object) -> Answers:
        return answers

    def run(work: Callable[[Any, AskTarget], Coroutine[Any, Any, int]]) -> None:
        asyncio.run(work(None, AskTarget("node1", "")))

    monkeypatch.setattr("sublet.ask.ask_all", ask_all)
    monkeypatch.setattr("sublet.ask.run", run)
    if command == "status":
        status_command.status()
    else:
        top_command.top(once=True)
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.split()[:2] == ["share", listed]]
    assert command == "top" or [line for line in printed if why in line]
    assert [line for line in printed if line != line.rstrip()] == []


def test_one_frame_of_top(answers: dict[str, Any]) -> None:
    assert shown(top.render(read("node1", answers))) == TOP


def test_a_node_where_nobody_answers_says_so_for_each_service_and_shows_no_zero(answers: dict[str, Any]) -> None:
    facts = read("node1", dict.fromkeys(answers))
    text = shown(status.render(facts))
    assert text.startswith("node1  nobody answers  mode -  Sublet -  up -  - evicted in 1h\n")
    assert text.count("does not answer") == len(answers) + 1
    assert "0" not in text
    assert "metrics does not answer" in shown(top.render(facts))


@pytest.mark.parametrize("service", ["metrics", "qrm", "evictor", "reporter", "central"])
def test_any_single_silent_service_leaves_a_screen_that_names_it(answers: dict[str, Any], service: str) -> None:
    facts = read("node1", answers | {service: None})
    assert f"{service:<9} does not answer" in shown(status.render(facts))
    assert service in status.as_json(facts)["silent"]
    shown(top.render(facts))


def test_an_answer_that_cannot_be_read_counts_as_not_told(answers: dict[str, Any]) -> None:
    answers["qrm"] = {"allocation": {"pools": 3}, "advice": "?"}
    answers["reporter"]["services"] = [{"service": 3}]
    facts = read("node1", answers)
    assert (facts.allocation, facts.advice) == (None, None)
    assert [health.service for health in facts.healths] == ["central"]
    assert "CPU - offered" in shown(status.render(facts))


def test_status_as_json_holds_the_offer_in_base_units(answers: dict[str, Any]) -> None:
    document = json.loads(json.dumps(status.as_json(read("node1", answers))))
    assert document["reclaimed"] == {
        "offered_cpu_millis": 42_000,
        "offered_memory_bytes": 180 << 30,
        "requested_cpu_millis": 2000,
        "requested_memory_bytes": 1 << 30,
    }
    assert document["silent"] == ["advisor"]
    assert document["pods"]["reclaimed_cores"] == ["default/encode"]
    assert document["allocation"]["pools"][0]["cpus"] == "11,22-23,35,46-47"


@pytest.mark.parametrize(
    ("cores", "cpus", "words"),
    [
        pytest.param(None, "0-1", "-", id="not known"),
        pytest.param(1.0, "", "-", id="no CPU"),
        pytest.param(0.0, "0-1", ".....   0%", id="idle"),
        pytest.param(1.0, "0-1", "##...  50%", id="half"),
        pytest.param(2.0, "0-1", "##### 100%", id="full"),
        pytest.param(3.0, "0-1", "#####+150%", id="more than its own"),
    ],
)
def test_the_use_of_a_pools_cpus_is_a_bar_and_a_percentage(cores: float | None, cpus: str, words: str) -> None:
    assert usage.bar(usage.Usage("share", cpus, cores, None, None)) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1 << 20, "1.0 MiB"),
        (195_257_901_056, "181.8 GiB"),
        (1 << 52, "4096.0 TiB"),
    ],
)
def test_memory_in_binary_units(value: int | None, text: str) -> None:
    assert figures.memory(value) == text


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (5.0, "5"), (0.25, "0.25"), (36_000.0, "36000")])
def test_numbers_without_needless_digits(value: float | None, text: str) -> None:
    assert figures.number(value) == text
