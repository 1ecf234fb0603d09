"""Checks one policy against every law, and says of a broken one the smallest case that hypothesis found."""

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.advisor.core.policy import Policy
from services.advisor.registry import known_policies, load, outside_policies
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import Refused, Unfit

MAX_CASE = 4000
"""Characters of a case that are printed."""


@dataclass(frozen=True, slots=True)
class LawResult:
    """Whether a policy holds a law."""

    law: str
    holds: bool
    case: str = ""
    """Of a broken law: what was found, and by which view."""


def find_policy(named: str) -> Policy[Any, Any]:
    """The policy of a file, or of this name among those that are installed.

    Raises:
        Refused: there is none, or it cannot be imported.
    """
    if named.endswith(".py"):
        return _of_file(Path(named))
    known, outside = known_policies(), outside_policies(())
    if named in known:
        return known[named]
    if named in outside:
        return load(outside[named])
    raise Refused(
        f"policy {named!r}: none is installed under this name; {did_you_mean(named, sorted({*known, *outside}))}; "
        "a file ends in .py",
        reason="not_found",
    )


def check_policy(policy: Policy[Any, Any]) -> Iterator[LawResult]:
    """Each law's result, as soon as it is there.

    Raises:
        Unfit: hypothesis is not installed.
    """
    if importlib.util.find_spec("hypothesis") is None:
        raise Unfit("hypothesis, which makes up the cases, is not installed: pip install 'sublet[authors]'")
    from sublet.laws.policy import LAWS

    for name, law in LAWS.items():
        try:
            law(policy)
        # Whatever a policy of somebody else raises is what its author wants to read.
        except Exception as error:  # noqa: BLE001
            yield LawResult(name, holds=False, case=_case(error))
        else:
            yield LawResult(name, holds=True)


def _case(error: BaseException) -> str:
    """The first error of a group, and the notes in which hypothesis prints the smallest case."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return "\n".join([said, *getattr(error, "__notes__", ())])[:MAX_CASE]


def _of_file(path: Path) -> Policy[Any, Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise Refused(f"policy file {path}: no such file", reason="file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pydantic look their module up by its name.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Refused(f"policy file {path}: {type(error).__name__}: {error}", reason="file") from error
    policy = getattr(module, "POLICY", None)
    if not isinstance(policy, Policy):
        raise Refused(f"policy file {path}: has no `POLICY = Policy(...)`; see `sublet policy new`", reason="file")
    return policy
