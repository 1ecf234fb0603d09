"""What `make test-sim` does: many worlds side by side, the story of one, shrinking, cases, mutations."""

import argparse
import contextlib
import gc
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from dataclasses import replace
from pathlib import Path

from deliberate_bugs import MUTATIONS
from faults import Fault, Plan
from plans import make_plan
from simulated_world import World

CASES = Path(__file__).parent / "cases"
AT_ONCE = 5
"""Seeds that a worker takes at a time."""
MUTATION_SEEDS = 2000


def run(arguments: Sequence[str]) -> int:
    """The command; 1 where a promise was broken, or a mutation was not found."""
    parser = argparse.ArgumentParser(prog="make test-sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many worlds (SEEDS=)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="tell the story of this seed (SEED=)")
    parser.add_argument("--case", type=Path, nargs="+", help="run these cases")
    parser.add_argument("--mutations", action="store_true", help="how many seeds each deliberate bug takes")
    parser.add_argument("--only", default="", help="of the mutations, those with this in their name")
    given = parser.parse_args(arguments)
    if given.seed is not None:
        return _tell(make_plan(given.seed))
    if given.case:
        return max(_run_case(path) for path in given.case)
    if given.mutations:
        return _mutations(given.only, given.seeds if "--seeds" in arguments else MUTATION_SEEDS)
    return _many(range(given.first, given.first + given.seeds))


def broken(plan: Plan) -> list[str]:
    """The promises that a world of this plan breaks."""
    gc.disable()
    try:
        return World(plan).run()
    except Exception as error:  # noqa: BLE001 - a world that cannot be played to its end is a finding as well
        return [f"{type(error).__name__}: {error}", traceback.format_exc(limit=-6)]
    finally:
        gc.enable()
        gc.collect()


def shrink(plan: Plan) -> Plan:
    """The plan without each fault, and with the shortest time of each, that it does not need to break a promise."""
    promise = _promise(broken(plan))
    index = len(plan.faults) - 1
    while index >= 0:
        fewer = replace(plan, faults=plan.faults[:index] + plan.faults[index + 1 :])
        if _promise(broken(fewer)) == promise:
            plan = fewer
        index -= 1
    for index, fault in enumerate(plan.faults):
        for shorter in (fault.for_s / 4, fault.for_s / 2):
            tried = replace(fault, for_s=round(shorter, 3))
            quicker = replace(plan, faults=(*plan.faults[:index], tried, *plan.faults[index + 1 :]))
            if _promise(broken(quicker)) == promise:
                plan = quicker
                break
    return plan


def _promise(violations: Sequence[str]) -> str:
    return violations[0].partition(":")[0] if violations else ""


def _tell(plan: Plan) -> int:
    for fault in plan.faults:
        print(f"at {fault.at_s:g} s for {fault.for_s:g} s: {fault.kind} of {fault.target}, {fault.amount:g}")
    violations = World(plan, tell=print).run()
    print("\n".join(violations) or "every promise was kept")
    return int(bool(violations))


def _run_case(path: Path) -> int:
    violations = broken(Plan.of(json.loads(path.read_text())["plan"]))
    print(f"{path.stem}: {'; '.join(violations) or 'kept'}")
    return int(bool(violations))


def _some(seeds: Sequence[int]) -> list[tuple[int, list[str]]]:
    return [(seed, found) for seed in seeds if (found := broken(make_plan(seed)))]


def _chunks(seeds: Sequence[int]) -> Iterator[Sequence[int]]:
    yield from (seeds[start : start + AT_ONCE] for start in range(0, len(seeds), AT_ONCE))


def _workers() -> ProcessPoolExecutor:
    """Processes that begin with everything loaded; none of it is looked at when a world is cleared away."""
    World(make_plan(0)).run()
    gc.collect()
    gc.freeze()
    return ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=multiprocessing.get_context("fork"))


def _many(seeds: Sequence[int]) -> int:
    began_s, failed = time.monotonic(), []
    with _workers() as pool:
        waiting: set[Future[list[tuple[int, list[str]]]]] = {pool.submit(_some, chunk) for chunk in _chunks(seeds)}
        chunks = len(waiting)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED, timeout=5.0)
            for one in done:
                for seed, found in one.result():
                    failed.append(seed)
                    print(f"seed {seed}: {found[0]}", flush=True)
            _progress(1 - len(waiting) / chunks, len(seeds), began_s)
    took_s = time.monotonic() - began_s
    print(f"\n{len(seeds)} worlds in {took_s:.0f} s, {len(seeds) / took_s:.1f} a second; {len(failed)} broke a promise")
    for seed in sorted(failed)[:3]:
        print(f"shrinking seed {seed} …", flush=True)
        path = _write_case(seed)
        print(f"make test-sim SEED={seed} tells its story; {path} has what it takes")
    return int(bool(failed))


def _progress(part: float, seeds: int, began_s: float) -> None:
    if sys.stderr.isatty():
        done = round(part * seeds)
        print(f"\r{done} of {seeds} worlds, {time.monotonic() - began_s:.0f} s", end="", file=sys.stderr, flush=True)


def _write_case(seed: int) -> Path:
    plan = shrink(make_plan(seed))
    path = Path("out") / f"simulation-{seed}.json"
    path.parent.mkdir(exist_ok=True)
    document = {"about": broken(plan)[0], "plan": plan.document()}
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _found_after(name: str, seeds: Iterable[int]) -> tuple[int, str] | None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(MUTATIONS[name].applied())
        for count, seed in enumerate(seeds, start=1):
            if found := broken(make_plan(seed)):
                return count, found[0]
    return None


def _mutations(only: str, seeds: int) -> int:
    names = [name for name in MUTATIONS if only in name]
    missed = 0
    print(f"{'bug':44} {'after':>5}  found as")
    with _workers() as pool:
        looks = {pool.submit(_found_after, name, range(seeds)): name for name in names}
        for look in as_completed(looks):
            found = look.result()
            missed += found is None
            count, said = found or (seeds, "NOT FOUND")
            print(f"{looks[look]:44} {count:5}  {said[:110]}", flush=True)
    print(f"{len(names) - missed} of {len(names)} deliberate bugs found within {seeds} seeds each")
    return int(missed > 0)


__all__ = ["Fault", "broken", "run", "shrink"]
