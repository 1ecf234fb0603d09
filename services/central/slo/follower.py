"""Follows Koordinator's ConfigMap: its current content for each node, and the last valid state of unusable parts."""

from collections.abc import Mapping

import structlog

from services.central.core.slo.config_map import ReadSloConfig, SloConfig, SloConfigMap, read_slo_config
from services.central.core.slo.node_strategies import UNKNOWN, NodeStrategies, SloStrategies
from services.central.settings import NAME
from shared import telemetry
from shared.errors import Unavailable
from shared.ports import ObjectMirror

log = structlog.get_logger()


class SloFollower:
    """Reads the ConfigMap once per change. A missing one is empty, and the settings apply."""

    def __init__(self, mirror: ObjectMirror[SloConfigMap], name: str) -> None:
        self.mirror, self.name = mirror, name
        self._data: Mapping[str, str] | None = None
        self._good: SloConfig | None = None
        self._read = ReadSloConfig({})
        self._strategies = SloStrategies(self._read)

    @property
    def failure(self) -> str:
        """Why it was never seen; "" once it was, there or not."""
        try:
            _ = self.mirror.objects
        except Unavailable as error:
            return f"ConfigMap {self.name}: {error}"
        return ""

    @property
    def uid(self) -> str:
        """UID of the ConfigMap; "" while there is none."""
        found = self._seen()
        return "" if found is None else found.uid

    @property
    def problems(self) -> list[str]:
        """Parts that cannot be used, and what applies instead."""
        self._refresh()
        return [str(problem) for problem in self._read.problems]

    @property
    def ignored(self) -> list[str]:
        """Parts that Sublet does not read, and values that no setting accepts."""
        self._refresh()
        return [*self._read.unknown, *self._strategies.unfollowed]

    @property
    def refused(self) -> Mapping[str, str]:
        """Parts that are not in force, and why."""
        problems = self.problems
        return {f"ConfigMap {self.name}": "; ".join(problems)} if problems else {}

    def of(self, labels: Mapping[str, str]) -> NodeStrategies:
        """Return what it says about a node with these labels."""
        self._refresh()
        return self._strategies.of(labels) if self._data is not None else UNKNOWN

    def _seen(self) -> SloConfigMap | None:
        try:
            return next(iter(self.mirror.objects.values()), None)
        except Unavailable:
            return None

    def _refresh(self) -> None:
        """Read it if it has changed. A mirror that is behind has the last seen content."""
        if self.failure:
            return
        found = self._seen()
        data = {} if found is None else found.data
        if data == self._data:
            return
        self._data = data
        self._read = read_slo_config(data, self._good)
        self._good = self._read.config
        self._strategies = SloStrategies(self._read)
        if self._read.problems:
            telemetry.CONFIG_REFUSED.labels(NAME).inc()
            log.error("slo.refused", config_map=self.name, why=self.problems)
        log.info("slo.read", config_map=self.name, there=found is not None, keys=sorted(self._read.config))
