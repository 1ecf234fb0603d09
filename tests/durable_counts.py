"""How far a durable has come, once the server has counted: it does so after it has acknowledged."""

from functools import partial

from present import present
from until_met import until_found

from shared.adapters.nats.bus import NatsBus
from shared.adapters.nats.consumers import DurableState

PATIENCE_S = 20.0


async def until_counted(bus: NatsBus, name: str, *, pending: int, unacknowledged: int = 0) -> DurableState:
    """The state of a durable as soon as so many events wait for it and so many are under way."""

    def counted(state: DurableState | None) -> bool:
        return state is not None and (state.pending, state.unacknowledged) == (pending, unacknowledged)

    return present(await until_found(partial(bus.durables.named, name), counted, PATIENCE_S))
