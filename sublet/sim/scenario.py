"""A scenario: a machine, settings, and what happens when. With expectations it is a test as well.

name: quickstart
steps:
  - {at_s: 0, say: the node is idle}
  - {at_s: 30, apply: [<pod manifest>, …]}
  - {at_s: 90, exec: {pod: shared-normal-pod, command: [stress, -c, "2"]}}
  - {at_s: 200, delete: shared-normal-pod}
  - {at_s: 205, configure: {evictor: {cooling_s: 30}}}
  - {at_s: 210, within_s: 60, expect: {reclaimed_millicpu: 44k, share: "11,23,35,47"}}
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from shared.contracts.envelope import CpuList
from shared.contracts.eviction_phases import Phase
from shared.contracts.kube.quantities import parse_units
from shared.contracts.services import SERVICES
from shared.core.pydantic_words import field_faults
from shared.core.text.yaml_text import read_yaml
from shared.errors import Refused
from sublet.load.demand import demand_of
from sublet.sim.machine import SimMachine
from sublet.terminal.given_file import MAX_GIVEN_BYTES, read_given_text

BUILT_IN = Path(__file__).parent / "scenarios"
DEFAULT = "quickstart"
DAY_S = 86_400

_THINGS = ("apply", "exec", "delete", "configure", "expect")

Seconds = Annotated[float, Field(ge=0, le=DAY_S, allow_inf_nan=False)]
Quantity = Annotated[int, BeforeValidator(parse_units)]


def _pod_key(text: str) -> str:
    return text if "/" in text else f"default/{text}"


PodKey = Annotated[str, AfterValidator(_pod_key)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Exec(_Part):
    """Run one more command in a container of a running pod, as `kubectl exec` would."""

    pod: PodKey
    container: str = ""
    """Empty: the first one."""
    command: Annotated[tuple[str, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _readable(self) -> "Exec":
        # Checked with the document, not when its time comes.
        demand_of(self.command)
        return self


class ExpectedEvent(_Part):
    """An eviction event that must have been published; what is left out is not compared."""

    phase: Phase
    pod: PodKey
    message: str = ""


class Expect(_Part):
    """What must hold; what is left out is not looked at."""

    reclaimed_millicpu: Quantity | None = None
    """Allocatable of the node object."""
    reclaimed_memory: Quantity | None = None
    share: CpuList | None = None
    """CPUs of the shared_cores class, as its cgroup says."""
    reclaim: CpuList | None = None
    """CPUs of the reclaimed_cores class, as its cgroup says."""
    pods: tuple[PodKey, ...] | None = None
    """The pods that run, no more and no less."""
    evictions: Annotated[int, Field(ge=0)] | None = None
    """How many evictions have been begun so far."""
    events: tuple[ExpectedEvent, ...] = ()


def _known_sections(sections: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    unknown = sorted(set(sections) - set(SERVICES))
    if unknown:
        raise ValueError(f"no service {unknown[0]!r}; known: {', '.join(SERVICES)}")
    return sections


Sections = Annotated[dict[str, dict[str, Any]], AfterValidator(_known_sections)]


class Step(_Part):
    """One thing that happens at a time; exactly one of the fields below `say`, or only words."""

    at_s: Seconds
    say: str = ""
    apply: tuple[dict[str, Any], ...] | None = None
    """Pod manifests, as for `kubectl apply`."""
    exec: Exec | None = None
    delete: PodKey | None = None
    configure: Sections | None = None
    """New dynamic configuration of the services, whole: what central reads from its file."""
    expect: Expect | None = None
    within_s: Seconds = 0.0
    """How long an expectation may take to come true."""

    @model_validator(mode="after")
    def _one_thing(self) -> "Step":
        given = [name for name in _THINGS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a step does one thing, this one has {' and '.join(given)}; write two steps")
        if not given and not self.say:
            raise ValueError(f"a step needs one of {', '.join((*_THINGS, 'say'))}")
        if self.within_s and self.expect is None:
            raise ValueError("within_s is for a step with expect")
        return self


class Scenario(_Part):
    """The whole story. Times count from the start; steps ascend."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    about: str = ""
    machine: SimMachine = SimMachine()
    settings: Sections = {}
    """Settings by service, over the simulator's own."""
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    again_at_s: Seconds | None = None
    """When a host in real time begins with the first step anew; None: never. In virtual time a story is played once."""

    @model_validator(mode="after")
    def _in_order(self) -> "Scenario":
        for before, after in zip(self.steps, self.steps[1:], strict=False):
            end_s = before.at_s + before.within_s
            if after.at_s < end_s:
                raise ValueError(f"steps: at_s {after.at_s:g} comes before the end of the one above ({end_s:g})")
        if self.again_at_s is not None and self.again_at_s <= self.steps[-1].at_s:
            raise ValueError(f"again_at_s {self.again_at_s:g}: want a time after the last step's")
        return self


def read_scenario(document: Mapping[str, Any] | Any, *, source: str) -> Scenario:
    """Check a parsed document.

    Raises:
        Refused: it is no scenario; the message names the source, the place and the reason, for each mistake.
    """
    try:
        return Scenario.model_validate(document)
    except ValidationError as error:
        problems = [f"{'.'.join(fault.path) or 'document'}: {fault.wish}" for fault in field_faults(error)]
        raise Refused(f"scenario {source}: " + "; ".join(problems), reason="malformed") from error


def built_in_names() -> list[str]:
    """The scenarios that come with Sublet, ascending."""
    return sorted(file.stem for file in BUILT_IN.glob("*.yaml"))


def scenario_file(name: str | Path) -> Path:
    """The file of a scenario: itself, or that of a built-in one by its name."""
    path = Path(name)
    return path if path.suffix in (".yaml", ".yml") else BUILT_IN / f"{name}.yaml"


def load_scenario(name: str | Path) -> Scenario:
    """A scenario file, or a built-in one by its name.

    Raises:
        Refused: there is no such file, it is not YAML, or not a scenario.
    """
    path = scenario_file(name)
    if not path.is_file():
        raise Refused(
            f"scenario {str(name)!r}: no such file; built in: {', '.join(built_in_names())}", reason="missing"
        )
    text = read_given_text(str(path), what="scenario")
    return read_scenario(read_yaml(text, what=f"scenario {path}", max_bytes=MAX_GIVEN_BYTES).value, source=str(path))
