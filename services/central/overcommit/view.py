"""What the controller of over-committed nodes observes: configs, Nodes and the reports of their agents."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from services.central.core.overcommit.config_documents import (
    OVERCOMMIT_CONFIGS,
    OvercommitConfig,
    overcommit_config_of,
)
from services.central.core.overcommit.node_documents import OvercommitNode, overcommit_node
from services.central.core.overcommit.node_report import NodeOvercommitReport, node_report_of
from shared.core.api_kind import CNRS, NODES
from shared.ports import ObjectMirror, Objects


class OvercommitView:
    """Mirrors by name; `changed` is set whenever one of them has changed."""

    def __init__(self, objects: Objects) -> None:
        self.changed = asyncio.Event()
        self._configs = objects.mirror(OVERCOMMIT_CONFIGS, overcommit_config_of, self.changed.set)
        self._nodes = objects.mirror(NODES, overcommit_node, self.changed.set)
        self._reports = objects.mirror(CNRS, node_report_of, self.changed.set)

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """All of them, to be run."""
        return [self._configs, self._nodes, self._reports]

    @property
    def configs(self) -> list[OvercommitConfig]:
        """By name ascending.

        Raises:
            Unavailable: they were never listed.
        """
        return sorted(self._configs.objects.values(), key=lambda one: one.name)

    @property
    def nodes(self) -> list[OvercommitNode]:
        """By name ascending.

        Raises:
            Unavailable: as `configs`.
        """
        return sorted(self._nodes.objects.values(), key=lambda one: one.name)

    @property
    def reports(self) -> Mapping[str, NodeOvercommitReport]:
        """By name of their node.

        Raises:
            Unavailable: as `configs`.
        """
        return {one.name: one for one in self._reports.objects.values()}
