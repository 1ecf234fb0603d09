"""What `sublet up` and `sublet down` would do with these settings on this machine, in words; nothing is done."""

from shared.settings import CommonSettings
from sublet.host.preflight import require_fit
from sublet.host.teardown import any_groups
from sublet.state.folder import removed_names
from sublet.terminal.dry_run import dry


def rehearse_up(common: CommonSettings, url: str, nats_port: int, about: str) -> str:
    """What would be started where; `about` is what a simulated machine plays, empty on a real one.

    Raises:
        Unfit: the machine lacks something.
    """
    require_fit(common)
    server = "the given NATS server" if url else f"a NATS server on port {nats_port or 'that is free'}"
    machine = f"a simulated machine; {about}" if about else "this machine's cgroups"
    return dry(
        f"the six services would be started as node {common.node} on {machine}, with {server} and the state folder "
        f"{common.state_dir}"
    )


def rehearse_down(common: CommonSettings, *, forget: bool) -> str:
    """What would be ended and removed."""
    groups = common.substrate == "host" and any_groups(common.host_root)
    names = removed_names(common.state_dir, forget=forget)
    ended = ["its pods and cgroups would be ended and removed"] if groups else []
    removed = [f"{common.state_dir}: {', '.join(names)} would be removed"] if names else []
    return dry("; ".join([*ended, *removed]) or "nothing is left that would be removed")
