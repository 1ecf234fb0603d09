"""A node's taints in memory: what was written, and a substrate that fails on demand."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.contracts.kube.taint import TAINT_PREFIX, Taint, in_order
from shared.errors import Refused, Unavailable


@dataclass
class FakeTaints:
    """A NodeTaints over a list."""

    taints: list[Taint] = field(default_factory=list)
    """Everybody's."""
    failure: str = ""
    """Why nothing can be read or written now; "" while it can."""
    keeps_causes: bool = True
    """False: as an API server, which has no place for them."""
    writes: int = 0
    shown: tuple[Taint, ...] | None = None
    """What the node's object says; None: nothing was ever told."""
    show_failure: str = ""
    """Why the node's object cannot be written now; "" while it can."""

    async def read(self) -> tuple[Taint, ...]:
        """Ours."""
        self._require_well()
        return in_order(taint for taint in self.taints if taint.ours)

    async def write(self, taints: Sequence[Taint]) -> None:
        """Replace ours."""
        self._require_well()
        if foreign := [taint.key for taint in taints if not taint.ours]:
            raise Refused(f"taint {foreign[0]}: want a key under {TAINT_PREFIX}; not written", reason="foreign")
        ours = taints if self.keeps_causes else [taint.model_copy(update={"causes": ()}) for taint in taints]
        self.taints = [*(taint for taint in self.taints if not taint.ours), *ours]
        self.writes += 1

    async def show(self, taints: Sequence[Taint]) -> None:
        """In the node's object."""
        if self.show_failure:
            raise Unavailable(self.show_failure)
        self.shown = tuple(taints)

    def _require_well(self) -> None:
        if self.failure:
            raise Unavailable(self.failure)
