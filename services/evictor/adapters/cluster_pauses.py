"""The pauses of cluster and pools as this node was told of them last, also before a restart and without a hub."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import structlog

from shared.adapters.files.replaced import replace_file
from shared.contracts.bus.subjects import MAX_CONFIG_BYTES
from shared.contracts.cluster.pauses import PAUSES_KEY, Pauses, why_paused
from shared.errors import Refused, SubletError, Unavailable
from shared.ports import Clock, Entry

log = structlog.get_logger()

NAME = "cluster-pauses.json"
ASK_POOL_S = 60.0
"""Between two looks at the label of the Node; a change of its pool is seen that late."""
ASK_AGAIN_S = 5.0


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ClusterPauses:
    """A pause is kept in the state folder, so that a node that restarts without its hub still knows of it."""

    def __init__(
        self, state_dir: Path, pool: Callable[[], Awaitable[str]], clock: Clock, now: Callable[[], datetime] = _utc_now
    ) -> None:
        """`pool` asks for the pool of this node, "" for none; `now` is the time of day, which an end is meant by."""
        self._path, self._ask_pool, self._clock, self._now = state_dir / NAME, pool, clock, now
        self._pool: str | None = None
        self._unreadable = ""
        self._pauses = self._kept()

    def why(self) -> str:
        """Why evictions are paused for this node's pool or the whole cluster, "" when they are not.

        Where the pool is not known, the pause of any pool counts, and so does a pause that cannot be read.
        """
        return self._unreadable or why_paused(self._pauses.pauses, self._pool, self._now())

    def follow_entry(self, entry: Entry) -> None:
        """Follow the entry of the bucket; one that cannot be read pauses until there is one that can."""
        if entry.key != PAUSES_KEY:
            return
        try:
            pauses = _read(entry.value or b"{}")
        except Refused as refusal:
            self._unreadable = f"the cluster's pauses cannot be read: {refusal}"
            log.error("pauses.refused", revision=entry.revision, why=str(refusal))
            return
        if pauses != self._pauses:
            log.warning("pauses.changed", revision=entry.revision, pauses=[pause.words for pause in pauses.pauses])
        self._unreadable, self._pauses = "", pauses
        try:
            replace_file(self._path, pauses.encode(), what="the cluster's pauses")
        except Unavailable as error:  # it holds all the same, until this process ends
            log.warning("pauses.not_kept", why=str(error))

    async def run(self) -> None:
        """Keep the pool of this node until cancelled; what was known last holds while the API server is away."""
        while True:
            try:
                self._pool = await self._ask_pool()
            except SubletError as error:
                log.debug("pool.not_known", why=str(error))
            await self._clock.sleep(ASK_AGAIN_S if self._pool is None else ASK_POOL_S)

    def _kept(self) -> Pauses:
        try:
            with self._path.open("rb") as file:
                return _read(file.read(MAX_CONFIG_BYTES + 1))
        except FileNotFoundError:
            return Pauses()
        except (OSError, Refused) as error:
            self._unreadable = f"{self._path}: {error}"
            return Pauses()


def _read(value: bytes) -> Pauses:
    if len(value) > MAX_CONFIG_BYTES:
        raise Refused(f"pauses: {len(value)} bytes, at most {MAX_CONFIG_BYTES} are read", reason="too_large")
    return Pauses.decode(value)
