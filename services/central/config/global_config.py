"""The controller of the configuration of all nodes: brings the bucket to what the file says."""

import structlog

from services.central.core.config import encode_config, read_config
from services.central.ports.app import ConfigText
from services.central.settings import NAME
from shared import telemetry
from shared.contracts.bus.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY, PUBLISHED_AT, PUBLISHED_BY
from shared.contracts.services import SERVICES
from shared.errors import BadConfig, SubletError
from shared.ports import Clock
from shared.wire import Wire

log = structlog.get_logger()


class GlobalConfig:
    """Every central observes the file, so that a new leader knows its content; only the leader writes the bucket."""

    def __init__(self, text: ConfigText, wire: Wire, clock: Clock) -> None:
        self._text, self._bus, self._clock = text, wire.bus, clock
        self._publisher = f"central/{wire.node} {text.name}".encode("ascii", "backslashreplace").decode()
        self._wanted: bytes | None = None
        self._validated = False
        """Whether the bucket was seen to hold what is wanted."""
        self.revision = 0
        """Revision of the entry in the bucket; 0 while there is none."""
        self.refusal = ""
        """Why the file's newest text is not in force; "" while it is."""

    @property
    def name(self) -> str:
        """Where the text is."""
        return self._text.name

    def observe(self) -> None:
        """Read the file if it has changed; a bad file leaves the last good configuration in force."""
        try:
            text = self._text.changed()
            if text is None:
                return
            # In one step: a text that cannot be read leaves what was wanted before.
            self._wanted = encode_config(read_config(text, known=SERVICES))
            self._validated = False
        except BadConfig as error:
            self.refusal = str(error)
            telemetry.CONFIG_REFUSED.labels(NAME).inc()
            log.error("config.refused", file=self._text.name, why=str(error))
        else:
            self.refusal = ""

    def forget(self) -> None:
        """Compare the bucket again: it may be a new one, or another central may have led."""
        self._validated = False

    async def reconcile(self) -> None:
        """Bring the bucket to what the file says; without a file the bucket stays unchanged."""
        if self._validated:
            return
        try:
            entry = await self._bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
            # No file is no wish: a bucket that another central or an operator has filled is not emptied.
            if self._wanted is None or (entry is not None and entry.value == self._wanted):
                self.revision = entry.revision if entry else 0
            else:
                headers = {PUBLISHED_AT: self._clock.wall().isoformat(), PUBLISHED_BY: self._publisher}
                self.revision = await self._bus.put(CONFIG_BUCKET, GLOBAL_CONFIG_KEY, self._wanted, headers)
                log.info("config.published", revision=self.revision, bytes=len(self._wanted))
        except SubletError as error:
            log.warning("config.not_published", why=str(error))
            return
        self._validated = True
