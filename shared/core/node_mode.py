"""The node's mode is the switch above all other modes: while a node observes, nothing on it goes beyond a dry run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from shared.contracts.mode import Mode, NodeMode
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import BadConfig, SettingProblem

MODE_KEY = "mode"
"""Key of the mode: in the settings of a node, and next to the sections of a configuration document."""
_MODES: tuple[Mode, ...] = ("observe", "dry-run", "enforce")
_SHOWN_CHARACTERS = 60


@dataclass(slots=True)
class NodeSwitch:
    """The mode of the node that one service works in; the runner sets it before the service is reconfigured."""

    mode: NodeMode = "enforce"

    @property
    def observes(self) -> bool:
        """Whether nothing on the node may be changed."""
        return self.mode == "observe"


def weaker(one: Mode, other: Mode) -> Mode:
    """Of two modes the one that does less."""
    return min(one, other, key=_MODES.index)


def bounded(mode: Mode, node: NodeMode) -> Mode:
    """How far a policy, a plugin or qrm goes in its own mode, on a node in this mode."""
    return mode if node == "enforce" else weaker(mode, "dry-run")


def document_mode(document: Mapping[str, Any], what: str) -> NodeMode | None:
    """Return the mode of a configuration document; None if it has none.

    Raises:
        BadConfig: it is neither observe nor enforce.
    """
    if MODE_KEY not in document:
        return None
    value = document[MODE_KEY]
    modes: tuple[NodeMode, ...] = get_args(NodeMode)
    for mode in modes:
        if value == mode:
            return mode
    shown = repr(value)[:_SHOWN_CHARACTERS]
    meant = did_you_mean(str(value)[:_SHOWN_CHARACTERS], modes, otherwise=f"write {' or '.join(modes)}")
    problem = SettingProblem((MODE_KEY,), f" = {shown}: it is observe or enforce; {meant}")
    raise BadConfig(f"{what}: {problem}", reason="invalid", problems=(problem,))
