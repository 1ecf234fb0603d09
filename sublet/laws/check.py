"""Checks one extension against every law, and reports for a broken one the smallest case that hypothesis found."""

import importlib.util
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from services.advisor.core.policy import Policy
from services.evictor.core.plugin import Plugin
from shared.errors import Unfit
from sublet.laws.extension import FoundExtension
from sublet.laws.result import LawResult, broken_result

if TYPE_CHECKING:
    from sublet.laws.law import Law

T = TypeVar("T")


def check_policy(found: FoundExtension[Policy[Any, Any]]) -> Iterator[LawResult]:
    """Each law's result for a policy, as soon as it is there.

    Raises:
        Unfit: hypothesis is not installed.
    """
    _require_hypothesis()
    from sublet.laws import policy

    return _results(policy.LAWS, found.extension, found.file)


def check_plugin(found: FoundExtension[Plugin[Any, Any, Any]], given: Mapping[str, Any]) -> Iterator[LawResult]:
    """Each law's result for an eviction plugin with these settings, as soon as it is there.

    Raises:
        Unfit: hypothesis is not installed.
        BadConfig: a setting is not one of the plugin's, or out of bounds.
    """
    _require_hypothesis()
    from services.evictor.settings import Configured
    from shared.settings import check
    from sublet.laws import plugin

    settings = check(found.extension.settings, {"enabled": True, **given}, where=("plugin", found.extension.name))
    return _results(plugin.LAWS, Configured(found.extension, settings), found.file)


def _require_hypothesis() -> None:
    if importlib.util.find_spec("hypothesis") is None:
        raise Unfit("hypothesis, which makes up the cases, is not installed: pip install 'sublet[authors]'")


def _results(laws: "Mapping[str, Law[T]]", subject: T, file: str) -> Iterator[LawResult]:
    from hypothesis.configuration import set_hypothesis_home_dir

    # What hypothesis keeps on the disk: an author's working folder stays as it is.
    with tempfile.TemporaryDirectory(prefix="sublet-laws-") as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield from (_result(name, law, subject, file) for name, law in laws.items())
        finally:
            set_hypothesis_home_dir(None)


def _result(name: str, law: "Law[T]", subject: T, file: str) -> LawResult:
    try:
        law(subject)
    # Whatever an extension of somebody else raises, even an exit, is what its author wants to read.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return broken_result(name, error, file)
    return LawResult(name, holds=True)
