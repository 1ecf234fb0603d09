"""`ended` reads this host's record of a finished pod."""

from typing import Any

from shared.adapters.local.pods import LocalPods
from shared.errors import SubletError
from sublet.instance import instance_settings


def ended(namespace: str, name: str) -> dict[str, Any] | None:
    """Exit codes, reasons and message of a pod that has ended; None without such a record, or without a right to it."""
    try:
        status = LocalPods(instance_settings().state_dir).find(name, namespace).status
    except (SubletError, OSError):
        return None
    if not status.finished:
        return None
    containers = status.containers.values()
    return {
        "exit_codes": [one.exit_code for one in containers if one.exit_code is not None],
        "reasons": list(dict.fromkeys(reason for reason in (status.reason, *(c.reason for c in containers)) if reason)),
        "message": status.message,
        "ended_at": None if status.ended_at is None else status.ended_at.isoformat(),
    }
