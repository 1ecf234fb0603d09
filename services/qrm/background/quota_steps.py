"""Quota steps hand each sample to the quotas that move, while this node enforces; nothing is read before one may."""

from collections.abc import Mapping, Sequence

from services.qrm.core.isolation.quota_burst import QuotaBurstRules
from services.qrm.core.isolation.quota_pods import BurstInput, QuotaBursts
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import Layout
from shared.ports import Clock
from shared.wire import Newest, Wire


class QuotaSteps:
    """The quotas that move, and the samples by which they do."""

    def __init__(self, wire: Wire, clock: Clock, layout: Layout) -> None:
        self._wire, self._clock, self._layout = wire, clock, layout
        self._samples: Newest[NodeSample] | None = None
        self._bursts = QuotaBursts()

    @property
    def raised(self) -> Mapping[str, int]:
        """The quotas above their limits, by group, in milli-cores."""
        return self._bursts.raised()

    async def step(self, pods: Sequence[Pod], rules: QuotaBurstRules, *, enforces: bool) -> None:
        """Take one step if there is new input; while nothing is enforced, all quotas restart at the limits."""
        if not rules.on or not enforces:
            self._bursts.end()
            return
        if self._samples is None:
            self._samples = await self._wire.newest(NodeSample)
        seen = BurstInput(self._samples.value, self._samples.age_s, self._clock.monotonic())
        self._bursts.step(pods, seen, rules, self._layout)

    def end(self) -> None:
        """Forget every quota: all go back to the limits."""
        self._bursts.end()

    def told(self) -> Mapping[str, object]:
        """Return what `sublet explain` shows about quotas."""
        return self._bursts.told(self._clock.monotonic())
