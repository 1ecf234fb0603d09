"""TideNodePool objects (docs/facts/katalyst-tide.md#roles): an unreadable pool changes nothing and says why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from services.central.core.clock_bounds.cron import LONGEST, parse_cron
from services.central.core.clock_bounds.replicas import CronBound, LocalTime, Replicas, TimeBound, scheduled_bounds
from services.central.core.tide.edits import PoolMarks
from services.central.core.tide.marks import BATCH_UNWANTED, PREFIX, SERVICES_UNWANTED, SideTaints, TideTaint
from services.central.core.tide.roles import Amount, Reserves, count_of
from shared.core.api_kind import ApiKind
from shared.core.pydantic_words import first_fault
from shared.core.text.document import mapping
from shared.errors import Refused

POOLS = ApiKind("tide.katalyst.kubewharf.io", "v1alpha1", "TideNodePool", "tidenodepools")
FINALIZER = f"{PREFIX}finalizer"
MOST_LABELS, MOST_BOUNDS = 16, 64
TAINT_KEYS = "taintKeys"
"""In the status: former keys of taints, so that a change of the keys in the spec leaves no taint behind."""
MOST_KEYS, MOST_KEY_CHARACTERS = 16, 317
LabelKey = Annotated[str, Field(min_length=1, max_length=MOST_KEY_CHARACTERS)]
LabelValue = Annotated[str, Field(max_length=63)]


class _PoolPart(BaseModel):
    """Of an object that the API server has pruned by its schema; what it knows and we do not do is refused here."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel)


class ReserveSpec(_PoolPart):
    """How many nodes stay on each side."""

    online: int | Annotated[str, Field(max_length=16)] | None = None
    offline: int | Annotated[str, Field(max_length=16)] | None = None


class NodeConfigs(_PoolPart):
    """Which nodes, and how many of them stay."""

    node_selector: Annotated[dict[LabelKey, LabelValue], Field(min_length=1, max_length=MOST_LABELS)]
    reserve: ReserveSpec = ReserveSpec()


class TaintSpec(_PoolPart):
    """A custom taint; undeclared parts have their default."""

    key: LabelKey | None = None
    value: LabelValue | None = None
    effect: Literal["NoExecute", "NoSchedule", ""] | None = None

    def over(self, usual: TideTaint) -> TideTaint:
        """As it is in force."""
        value = usual.value if self.value is None else self.value
        return TideTaint(self.key or usual.key, self.effect or usual.effect, value)


class Watermark(_PoolPart):
    """The taints: that of the batch side, which evicts services' pods, and that of the services' side, which evicts
    batch pods."""

    evict_online_pod_taint: TaintSpec = TaintSpec()
    evict_offline_pod_taint: TaintSpec = TaintSpec()


class EvictStrategy(_PoolPart):
    """How pods of the other side leave."""

    type: Literal["watermark", ""] = "watermark"
    watermark: Watermark = Watermark()


class HourBound(_PoolPart):
    """From each minute on that the expression names, at least so many tide nodes are for services."""

    cron_tab: Annotated[str, Field(max_length=LONGEST)]
    min_online: int | Annotated[str, Field(max_length=16)]


class HourSchedule(_PoolPart):
    """The bound that fired last holds."""

    utc_offset_minutes: Annotated[int, Field(ge=-1080, le=1080)] = 0
    bounds: Annotated[list[HourBound], Field(max_length=MOST_BOUNDS)] = []


class PoolSpec(_PoolPart):
    """The spec of a TideNodePool."""

    node_configs: NodeConfigs
    evict_strategy: EvictStrategy = EvictStrategy()
    schedule: HourSchedule = HourSchedule()


@dataclass(frozen=True, slots=True)
class TidePool:
    """A pool that can be worked with."""

    selector: tuple[tuple[str, str], ...]
    online: Amount
    offline: Amount
    taints: SideTaints
    schedule: HourSchedule = field(default_factory=HourSchedule)

    def least_online(self, tide_nodes: int, now_s: float) -> int:
        """How many of so many tide nodes are to be on the services' side at this moment; of percentages rounded up."""
        bounds = [
            CronBound(one.cron_tab, Replicas(count_of(one.min_online, tide_nodes, up=True)))
            for one in self.schedule.bounds
        ]
        moment = LocalTime(now_s, self.schedule.utc_offset_minutes)
        return min(tide_nodes, scheduled_bounds((0, tide_nodes), [TimeBound(bounds)], moment).least)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is in it."""
        return all(labels.get(key) == value for key, value in self.selector)

    @property
    def selected_by(self) -> str:
        """The labels in words."""
        return ",".join(f"{key}={value}" for key, value in self.selector)


@dataclass(frozen=True, slots=True)
class TidePoolSeen:
    """A TideNodePool; without `pool` it is unreadable, and `problem` says why."""

    name: str
    uid: str
    created: str
    generation: int
    deleting: bool
    finalizers: tuple[str, ...]
    pool: TidePool | None
    problem: str = ""
    status: Mapping[str, Any] | None = None

    @property
    def marks(self) -> PoolMarks:
        """Return the marks of its nodes; for an unreadable pool the default ones, and its former ones."""
        taints = SideTaints() if self.pool is None else self.pool.taints
        return PoolMarks(self.name, replace(taints, former=self.former_keys))

    @property
    def former_keys(self) -> frozenset[str]:
        """Return keys of taints that its nodes may still have, according to its status."""
        keys = (self.status or {}).get(TAINT_KEYS)
        listed = keys[:MOST_KEYS] if isinstance(keys, list) else ()
        return frozenset(key for key in listed if isinstance(key, str) and 0 < len(key) <= MOST_KEY_CHARACTERS)


def pool_of(document: Mapping[str, Any]) -> TidePoolSeen:
    """Read an object; nothing in its spec raises.

    Raises:
        Refused: it has no name, which no API server sends.
    """
    meta = mapping(document.get("metadata"), "metadata")
    name, generation, status = meta.get("name"), meta.get("generation"), document.get("status")
    if not isinstance(name, str) or not name:
        raise Refused("metadata.name: want the name of a pool", reason="malformed")
    finalizers = meta.get("finalizers")
    pool, problem = None, ""
    try:
        pool = _read_pool(document.get("spec"))
    except Refused as refusal:
        problem = str(refusal)
    return TidePoolSeen(
        name=name,
        uid=str(meta.get("uid") or ""),
        created=str(meta.get("creationTimestamp") or ""),
        generation=generation if isinstance(generation, int) else 0,
        deleting=bool(meta.get("deletionTimestamp")),
        finalizers=tuple(one for one in finalizers if isinstance(one, str)) if isinstance(finalizers, list) else (),
        pool=pool,
        problem=problem,
        status=status if isinstance(status, Mapping) else None,
    )


def _read_pool(spec: object) -> TidePool:
    try:
        read = PoolSpec.model_validate(spec or {})
    except ValidationError as error:
        raise Refused(f"spec.{first_fault(error, whole='spec')}", reason="pool") from error
    reserve, watermark = read.node_configs.reserve, read.evict_strategy.watermark
    # With any number of nodes: whether it is an amount does not depend on it.
    Reserves.of(reserve.online, reserve.offline, 100)
    both = [amount for amount in (reserve.online, reserve.offline) if isinstance(amount, str)]
    if sum(int(amount.removesuffix("%")) for amount in both) > 100:
        raise Refused(
            f"spec.nodeConfigs.reserve: {both[0]} and {both[1]} are more than all nodes; want at most 100% together",
            reason="invalid_reserve",
        )
    taints = SideTaints(
        online=watermark.evict_offline_pod_taint.over(BATCH_UNWANTED),
        offline=watermark.evict_online_pod_taint.over(SERVICES_UNWANTED),
    )
    if taints.online.key == taints.offline.key:
        raise Refused(
            f"spec.evictStrategy.watermark: both sides have the taint {taints.online.key!r}; want two keys",
            reason="pool",
        )
    for place, bound in enumerate(read.schedule.bounds):
        try:
            parse_cron(bound.cron_tab)
            count_of(bound.min_online, 100, up=True)
        except Refused as refusal:
            raise Refused(f"spec.schedule.bounds[{place}]: {refusal}", reason="schedule") from refusal
    selector = tuple(sorted(read.node_configs.node_selector.items()))
    return TidePool(selector, reserve.online, reserve.offline, taints, read.schedule)


def refusals(pools: Sequence[TidePoolSeen], nodes: Iterable[Mapping[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the pools that are ignored, by name with reason and message; `nodes` by their labels.

    If two pools select the same node, the older one continues: a mistake in a new pool must not affect a working one.
    """
    labels, refused, working = list(nodes), {}, list[TidePoolSeen]()
    for seen in sorted(pools, key=lambda one: (one.created, one.name)):
        if seen.pool is None:
            refused[seen.name] = ("Unreadable", f"{seen.problem}; until it is mended the pool's nodes stay as they are")
            continue
        mine = [one for one in labels if seen.pool.selects(one)]
        rival = next((one for one in working if one.pool and any(map(one.pool.selects, mine))), None)
        if not mine:
            refused[seen.name] = ("NoNodes", f"nodeSelector {seen.pool.selected_by}: no node has these labels")
        elif rival is not None:
            both = sum(1 for one in mine if rival.pool and rival.pool.selects(one))
            why = f"{both} nodes are in the older pool {rival.name} as well; give each node to one pool"
            refused[seen.name] = ("Overlap", why)
        else:
            working.append(seen)
    return refused
