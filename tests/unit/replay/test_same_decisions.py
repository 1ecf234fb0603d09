"""Each decision of a row is the service's own: containers one by one, reasons in words, the advice as a message."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from replay_world import make_sample

from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import View
from services.advisor.core.round.decide import Round, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.registry import known_policies
from shared.contracts.advice import PoolAdvice
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import RECLAIM, RESERVE, SHARE
from sublet.replay.batch import BatchRules
from sublet.replay.contender import Contender, Decider, PolicyContender, Sizes, StaticContender, policy_of
from sublet.replay.peers import PEERS
from sublet.replay.run import replay
from sublet.replay.traces.frames import EPOCH, Frame, Trace
from sublet.replay.traces.loaders import traces
from sublet.replay.traces.tenants import Between, Packing, TenantSeries, nodes_of

SAMPLE = Path(__file__).parents[3] / "examples/traces/web-and-batch.jsonl.gz"
ROWS: list[Contender] = [
    # A shape that is said: the automatic one follows what was observed, beside the rounds.
    *[policy_of(f"{name}={name}:shape=partitioned") for name in known_policies()],
    policy_of("canonical=shared:shape=shared"),
    policy_of("adaptive=adaptive shared:shape=shared"),
    policy_of("adaptive=bold:cold_start_s=0,margin_factor=0.5,shape=partitioned"),
    policy_of("koordinator=quota:suppress_policy=cfsQuota"),
    policy_of("percentile=asked:cold_start=request"),
    *PEERS.values(),
    StaticContender(),
]
NODES: tuple[tuple[int, Between], ...] = ((2, "hold"), (4, "phase"), (16, "linear"), (48, "phase"))
USES = st.none() | st.floats(0, 30) | st.just(0.0)


@dataclass(frozen=True, slots=True)
class Watched:
    """A row, with what it decides."""

    row: Contender
    by_service: bool
    decided: list[Sizes] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.row.name

    def bounds(self, trace: Trace) -> Bounds:
        return self.row.bounds(trace)

    def start(self, trace: Trace) -> Decider:
        decider = self.row.start(trace)
        if not self.by_service:
            return _Noted(decider, self.decided)
        own = _Service(self.row) if isinstance(self.row, PolicyContender) else decider
        return _Noted(_OneByOne(own), self.decided)


@dataclass(slots=True)
class _Noted:
    decider: Decider
    decided: list[Sizes]

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:
        self.decided.append(self.decider.decide(view, system_cores, now_s))
        return self.decided[-1]


@dataclass(slots=True)
class _OneByOne:
    """A plain tuple knows no columns and keeps no answers: every function looks at each container."""

    decider: Decider

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:
        return self.decider.decide(replace(view, containers=tuple(view.containers)), system_cores, now_s)


@dataclass(slots=True)
class _Service:
    """What the advisor publishes, and what qrm makes of it."""

    row: PolicyContender
    last: Round | None = None

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:
        choice = self.row.choice
        chosen = ConfiguredPolicy(choice.policy, choice.policy_settings)
        self.last = decide(view, now_s, chosen, replace(choice.rules, fallback=None), self.last)
        assert all(isinstance(reason, Reason) for reason in self.last.why)
        said = PoolAdvice.model_validate(
            {"v": 1, "node": "node1", "boot_id": "0" * 16, "seq": 1, "sent_at": EPOCH, "valid_for_s": 30.0,
             **self.last.fields()}
        )  # fmt: skip
        said = PoolAdvice.decode(said.encode())
        cpus, reserve, reclaim = view.bounds.cpus, said.size_of(RESERVE), said.size_of(RECLAIM)
        own = said.size_of(SHARE) + sum(pool.cpus for pool in said.pools if pool.of_pods)
        tenants = cpus - reserve if said.overlap else min(own, cpus)
        quota = said.reclaimed_quota_millis
        return Sizes(
            tenants,
            reclaim if quota is None else min(reclaim, quota / 1000),
            said.reclaimed_cpu_millis / 1000,
            max(0, tenants + reclaim + reserve - cpus),
        )


def check(quick: Trace, slow: Trace) -> None:
    """Every row decides the same on both, frame by frame."""
    mine, theirs = ([Watched(row, by_service) for row in ROWS] for by_service in (False, True))
    replay([quick], mine, BatchRules())
    replay([slow], theirs, BatchRules())
    for one, other in zip(mine, theirs, strict=True):
        assert one.decided, one.name
        assert one.decided == other.decided, one.name


def restless(seed: int) -> list[TenantSeries]:
    """Tenants that walk, jump, rest and come late."""
    chance = Random(seed)
    found = []
    for number in range(8):
        used = [chance.uniform(0, 4)]
        for _ in range(30):
            jump = 6.0 if chance.random() < 0.1 else 0.0
            used.append(0.0 if chance.random() < 0.05 else min(9.0, max(0.0, used[-1] + chance.gauss(0, 1) + jump)))
        late = chance.choice([0, 0, 3])
        found.append(TenantSeries(f"t{number}", [60.0 * (late + n) for n in range(len(used))], used))
    return found


def check_series(series: Sequence[TenantSeries], packing: Packing) -> None:
    (quick,), (slow,) = (list(nodes_of(series, 60.0, packing, "day")) for _ in range(2))
    assert quick.columns is not None
    check(quick, replace(slow, columns=None))


def test_on_seeded_nodes_of_every_size() -> None:
    for seed, (cpus, between) in enumerate(NODES):
        check_series(restless(seed), Packing(cpus=cpus, pods_per_node=0, step_s=15.0, between=between))


def test_on_the_shipped_sample() -> None:
    def beginning() -> Trace:
        (trace,) = traces(SAMPLE, "recording", Packing())
        frames = list(islice(trace.to_replay(), 120))
        assert all(isinstance(frame, Frame) for frame in frames)
        return replace(trace, frames=lambda: iter([frame for frame in frames if isinstance(frame, Frame)]))

    check(beginning(), beginning())


@settings(max_examples=10)
@given(
    tenants=st.lists(
        st.tuples(st.text("ab/", min_size=1, max_size=3), st.lists(st.floats(0, 9), min_size=1, max_size=5)),
        min_size=1,
        max_size=5,
    ),
    cpus=st.sampled_from([2, 16, 48]),
)
def test_on_made_up_series(tenants: list[tuple[str, list[float]]], cpus: int) -> None:
    series = [TenantSeries(name, [60.0 * n for n in range(len(cores))], cores) for name, cores in tenants]
    check_series(series, Packing(cpus=cpus, pods_per_node=0, step_s=30.0))


@settings(max_examples=10)
@given(uses=st.lists(st.lists(USES, min_size=3, max_size=3), min_size=1, max_size=8))
def test_on_made_up_recordings_with_figures_that_are_missing(uses: list[list[float | None]]) -> None:
    def frames() -> Iterator[Frame]:
        for number, use in enumerate(uses):
            at_s = 10.0 * number
            yield Frame(at_s, 10.0 if number else 0.0, make_sample(use, number, at_s, cpu_usage_cores=1.0))

    check(Trace("node1", 48, True, frames), Trace("node1", 48, True, frames))
