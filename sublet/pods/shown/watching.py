"""`sublet get pods -w`: the pods, and then a line for each change."""

from collections.abc import Callable, Iterator, Sequence

from shared.adapters.local.runtime import Runtime
from shared.adapters.local.stored_pod import StoredPod
from sublet.pods.shown.pod_view import pods_table

POLL_S = 0.25


def watched_lines(
    runtime: Runtime, choose: Callable[[], list[StoredPod]], wait: Callable[[float], object], *, wide: bool
) -> Iterator[str]:
    """Lines without an end: first the table, then what has changed since; `wait` passes the time in between."""
    seen: dict[str, StoredPod] = {}
    generation = None
    while True:
        if (now := runtime.pods.generation()) != generation:
            pods = choose()
            changed = [stored for stored in pods if not _same(seen.get(stored.record.pod.uid), stored)]
            if changed:
                yield pods_table(changed, wide=wide, header=not seen)
            seen |= {stored.record.pod.uid: stored for stored in pods}
            yield from _gone(seen, pods)
            generation = now
        wait(POLL_S)


def _gone(seen: dict[str, StoredPod], pods: Sequence[StoredPod]) -> Iterator[str]:
    for uid in seen.keys() - {stored.record.pod.uid for stored in pods}:
        yield f"pod/{seen.pop(uid).record.pod.name} deleted"


def _same(before: StoredPod | None, now: StoredPod) -> bool:
    return before is not None and (before.record, before.status) == (now.record, now.status)
