"""`Origin` is the system from which nodes are handed over."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Its agent, and how both get along on a node."""

    system: str
    agent: str
    """The program of its agent, by which its DaemonSet and its pods are known."""
    beside: bool
    """Whether Sublet may observe on a node while it works there."""


ORIGINS: Mapping[str, Origin] = {
    "koordinator": Origin("koordinator", "koordlet", beside=True),
    "katalyst": Origin("katalyst", "katalyst-agent", beside=False),
}
