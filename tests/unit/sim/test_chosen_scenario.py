"""What `sublet up` plays is checked before anything starts, and refused where nothing is simulated."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from shared.errors import Refused
from shared.settings import read_environment
from sublet import cli
from sublet.commands import sim, up
from sublet.host.session import Session
from sublet.sim.live.chosen import LIVE_DEFAULT, choose_scenario
from sublet.sim.scenario import built_in_names, load_scenario


def test_without_a_name_it_is_the_default_and_its_words_are_told() -> None:
    chosen = choose_scenario("sim", "", 1.0, {})
    assert chosen.path == load_path(LIVE_DEFAULT)
    assert chosen.about.startswith("scenario tide: ")
    assert choose_scenario("sim", "idle", 10.0, {}).speed == 10.0


def load_path(name: str) -> Path:
    from sublet.sim.scenario import scenario_file

    return scenario_file(name).resolve()


@pytest.mark.parametrize("substrate", ["host", "kubernetes"])
def test_on_no_simulated_machine_there_is_no_scenario(substrate: str) -> None:
    assert choose_scenario(substrate, "", 1.0, {}).path is None
    for words in (("tide", 1.0), ("", 10.0)):
        with pytest.raises(Refused, match=f"substrate {substrate}.*only a simulated machine plays a scenario"):
            choose_scenario(substrate, *words, {})


@pytest.mark.parametrize(
    ("name", "speed", "word"),
    [
        ("nope", 1.0, "scenario 'nope': no such file; built in: idle, memory, overcommit, quickstart, tide"),
        ("nope.yaml", 1.0, "scenario 'nope.yaml': no such file"),
        ("", 0.0, "--speed 0: out of bounds; want 0.1 to 100"),
        ("", 1e6, "--speed 1e[+]06: out of bounds"),
        ("", float("nan"), "--speed nan: out of bounds"),
        ("", -1.0, "--speed -1: out of bounds"),
    ],
)
def test_what_cannot_be_played_is_refused_in_words(name: str, speed: float, word: str) -> None:
    with pytest.raises(Refused, match=word):
        choose_scenario("sim", name, speed, {})


def test_a_scenarios_settings_reach_the_services_unless_the_user_has_set_them() -> None:
    given = choose_scenario("sim", "memory", 1.0, {}).environment
    assert read_environment(given) == {"evictor": load_scenario("memory").settings["evictor"]}
    for name in ("SUBLET_EVICTOR__PLUGINS", "SUBLET_EVICTOR__PLUGINS__MEMORY_PRESSURE__NUMA_LEVEL"):
        assert choose_scenario("sim", "memory", 1.0, {name: "{}"}).environment == {}


@pytest.mark.parametrize(
    ("words", "code", "word"),
    [
        (("--substrate", "sim", "--scenario", "nope"), 2, "scenario 'nope': no such file"),
        (("--substrate", "host", "--scenario", "tide"), 2, "--scenario tide: this Sublet runs real processes"),
        (("--substrate", "host", "--speed", "10"), 2, "--speed 10: this Sublet runs real processes"),
        (("--substrate", "sim", "--speed", "1000"), 2, "want 0.1 to 100"),
    ],
)
def test_up_ends_with_a_word_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, word: str
) -> None:
    async def start(self: Session) -> None:
        raise AssertionError("something is started")

    monkeypatch.setattr(Session, "start", start)
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path / "state"))
    done = CliRunner().invoke(cli.build({"up": up}), ["up", *words])
    assert (done.exit_code, word in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "state").exists()


def test_the_built_in_scenarios_are_listed_and_named_in_the_help_of_up() -> None:
    header, *listed = CliRunner().invoke(cli.build({"sim": sim, "up": up}), ["sim", "--list"]).stdout.splitlines()
    assert header.startswith("NAME ")
    assert [line.split()[0] for line in listed] == built_in_names()
    assert all(len(line.split()) > 3 for line in listed)
    shown = " ".join(CliRunner().invoke(cli.build({"sim": sim, "up": up}), ["up", "--help"]).stdout.split())
    assert ", ".join(built_in_names()) in shown
