"""Pauses of a cluster or a pool: one key of a ConfigMap, which the user's own rights at the API server protect."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.adapters.kube.client import Document, Kube, KubeError
from shared.contracts.cluster.pauses import CONFIG_MAP, WHOLE_CLUSTER, WORDS, Pause, PausePart, pause_key, read_pauses
from shared.core.api_kind import CONFIG_MAPS, ApiKind
from shared.errors import Refused, Unavailable

MANAGER = "sublet-cli"
NOT_FOUND, CONFLICT, FORBIDDEN = 404, 409, 403
SELF_REVIEWS = ApiKind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews")


@dataclass(frozen=True, slots=True)
class Meant:
    """Whose evictions are paused or go on: of a pool, or "*", the whole cluster."""

    pool: str
    system: str
    """Namespace of the installation."""

    @property
    def words(self) -> str:
        """For people."""
        return "the whole cluster" if self.pool == WHOLE_CLUSTER else f"pool {self.pool}"

    @property
    def path(self) -> str:
        """Path of the ConfigMap."""
        return CONFIG_MAPS.path(CONFIG_MAP, self.system)


async def read_in_cluster(kube: Kube, system: str) -> tuple[Pause, ...]:
    """The pauses that are written there, also those that are over.

    Raises:
        Unavailable: no answer, or no right to read.
    """
    return read_pauses(await _data(kube, Meant(WHOLE_CLUSTER, system)) or {})[0]


async def pause(kube: Kube, meant: Meant, reason: str, until: datetime | None) -> Pause:
    """Write a pause, in place of an earlier one of the same pool.

    Raises:
        Refused: no pool can have that name, the reason is too long, or Sublet is not installed there.
        Unavailable: no answer, or no right to write.
    """
    key, plain = pause_key(meant.pool), " ".join(reason.split())
    if len(plain) > WORDS:
        raise Refused(f"--reason: {len(plain)} characters, want {WORDS} at most", reason="option")
    said = PausePart(reason=plain, until=until, by=(await _user(kube))[:WORDS])
    change = {"data": {key: said.model_dump_json(exclude_none=True)}}
    if await _data(kube, meant) is None:
        head = {**CONFIG_MAPS.head, "metadata": {"name": CONFIG_MAP, "namespace": meant.system}}
        try:
            await kube.create(CONFIG_MAPS.collection(meant.system), {**head, **change}, manager=MANAGER)
        except KubeError as error:
            if error.status == NOT_FOUND:
                raise Refused(
                    f"no namespace {meant.system}: Sublet is not installed there, or name it with --system",
                    reason="not_installed",
                ) from error
            if error.status != CONFLICT:  # somebody has made it in between
                raise _denied(error, meant) from error
        else:
            return Pause(pool=meant.pool, **said.model_dump())
    await _merge(kube, meant, change)
    return Pause(pool=meant.pool, **said.model_dump())


async def resume(kube: Kube, meant: Meant) -> tuple[bool, tuple[Pause, ...]]:
    """End a pause; whether there was one, and the pauses that stay.

    Raises:
        Refused: as `pause`.
        Unavailable: as `pause`.
    """
    key, data = pause_key(meant.pool), await _data(kube, meant) or {}
    if key in data:
        await _merge(kube, meant, {"data": {key: None}})
    return key in data, read_pauses({name: text for name, text in data.items() if name != key})[0]


async def _data(kube: Kube, meant: Meant) -> Mapping[str, Any] | None:
    try:
        found: Document = await kube.get(meant.path)
    except KubeError as error:
        if error.status == NOT_FOUND:
            return None
        raise _denied(error, meant) from error
    data = found.get("data")
    return data if isinstance(data, Mapping) else {}


async def _merge(kube: Kube, meant: Meant, change: Mapping[str, Any]) -> None:
    try:
        await kube.merge(meant.path, change, manager=MANAGER)
    except KubeError as error:
        raise _denied(error, meant) from error


async def _user(kube: Kube) -> str:
    """How the API server knows this user; "" on a server that does not say."""
    try:
        told = await kube.create(SELF_REVIEWS.collection(), dict(SELF_REVIEWS.head), manager=MANAGER)
    except KubeError:
        return ""
    return str(((told.get("status") or {}).get("userInfo") or {}).get("username") or "")


def _denied(error: KubeError, meant: Meant) -> Unavailable:
    if error.status != FORBIDDEN:
        return Unavailable(str(error), reason=error.reason)
    return Unavailable(
        f"you may not read or write ConfigMap {meant.system}/{CONFIG_MAP}, by which {meant.words} is paused; "
        f"an administrator can give you the Role sublet-pauses: {error}",
        reason=error.reason,
    )
