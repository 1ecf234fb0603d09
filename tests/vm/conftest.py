"""Boots of the emulated machine for tests, and at the end what was seen inside beside what the tutorial prints."""

from collections.abc import Callable
from typing import Any

import pytest
from guest.listings import PRINTED
from rig.build import VM, Parts, build
from rig.play import Told, play

KERNEL_LIMIT_S = 1800.0

Tell = Callable[..., Told]
_told = pytest.StashKey[list[Told]]()


@pytest.fixture(scope="session")
def parts() -> Parts:
    """The built machine; from the cache where it is there."""
    VM.require_tools()
    return build(print)


@pytest.fixture(scope="session")
def tell(parts: Parts, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Tell:
    """Play one of the stories of `guest/` in a machine of its own: name, limit in seconds, and what it is given."""

    def one(name: str, limit_s: float, given: object = None) -> Told:
        told = play(name, parts, tmp_path_factory.mktemp(name), limit_s=limit_s, given=given)
        pytestconfig.stash.setdefault(_told, []).append(told)
        return told

    return one


@pytest.fixture(scope="session")
def met(tell: Tell) -> Callable[[str], dict[str, Any]]:
    """What a part of the product has seen of the kernel, by its name; one machine for all of them."""
    told = tell("kernel", KERNEL_LIMIT_S)

    def seen(part: str) -> dict[str, Any]:
        assert part in told.report, told.why()
        found: dict[str, Any] = told.report[part]
        return found

    return seen


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The listings side by side, and how long everything took."""
    for told in config.stash.get(_told, []):
        done = told.done
        terminalreporter.section(
            f"{told.name}: booted in {done.boot_s:.0f} s (try {done.tries}), ran {done.run_s:.0f} s"
        )
        for step, seen in told.report.get("seen", {}).items():
            took_s = told.report["took_s"].get(step)
            terminalreporter.line(
                f"{step}{'' if took_s is None else f', reached after {took_s} s'}: {seen['millicpu']}"
            )
            for pool in ("share", "reclaim"):
                expected = PRINTED.get(step, {}).get(pool)
                terminalreporter.line(f"  {pool:<8} {seen[pool]:<26}" + (f" tutorial {expected}" if expected else ""))
