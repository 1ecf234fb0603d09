"""Selects the scenario of `sublet up`: checked before anything starts, and refused if nothing is simulated."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shared.errors import Refused
from shared.settings import PREFIX
from sublet.sim.scenario import Scenario, load_scenario, scenario_file

LIVE_DEFAULT = "tide"
SLOWEST, FASTEST = 0.1, 100.0


@dataclass(frozen=True, slots=True)
class ChosenScenario:
    """What the simulated machine plays, and what its services need for it."""

    path: Path | None = None
    about: str = ""
    speed: float = 1.0
    environment: Mapping[str, str] = field(default_factory=dict)
    """The scenario's settings for the services, as variables."""


def choose_scenario(substrate: str, name: str, speed: float, environ: Mapping[str, str]) -> ChosenScenario:
    """The scenario of this name, or the one that is played where none is given.

    Raises:
        Refused: there is none of that name, it cannot be read, or this substrate simulates nothing.
    """
    if substrate != "sim":
        for option, given in (("--scenario", name), ("--speed", "" if speed == 1.0 else f"{speed:g}")):
            if given:
                raise Refused(
                    f"{option} {given}: this Sublet runs real processes (substrate {substrate}), and only a simulated "
                    "machine plays a scenario: leave it out, or add --substrate sim",
                    reason="option",
                )
        return ChosenScenario()
    if not SLOWEST <= speed <= FASTEST:
        raise Refused(f"--speed {speed:g}: out of bounds; want {SLOWEST:g} to {FASTEST:g}", reason="option")
    scenario = load_scenario(name or LIVE_DEFAULT)
    about = f"scenario {scenario.name}: {scenario.about or 'no words about it'}"
    return ChosenScenario(scenario_file(name or LIVE_DEFAULT).resolve(), about, speed, _variables(scenario, environ))


def _variables(scenario: Scenario, environ: Mapping[str, str]) -> dict[str, str]:
    """The scenario's settings; what the user has set himself, or a part of it, goes before them."""
    named = {
        f"{PREFIX}{service}__{key}".upper(): json.dumps(value)
        for service, fields in scenario.settings.items()
        for key, value in fields.items()
    }
    own = tuple(environ)
    return {
        name: text for name, text in named.items() if not any(one == name or one.startswith(f"{name}__") for one in own)
    }
