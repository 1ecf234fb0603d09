"""`apply_pods` starts the pods of YAML documents: all or none."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.adapters.local.pod_user import PodUser
from shared.adapters.local.runtime import Runtime, new_uid
from shared.adapters.local.stored_pod import StoredPod
from shared.core.pods.manifest import PodRecord, read_pods
from shared.core.text.yaml_text import YamlDocument, read_yaml_documents
from shared.errors import Conflict, SubletError
from sublet.load.simulated_pods import require_playable
from sublet.pods.admission import admit
from sublet.pods.offer import warn_over_offer
from sublet.pods.taints import require_untainted
from sublet.terminal.given_file import MAX_GIVEN_BYTES, read_given_text

# As in a container, only what a program needs anywhere; everything else is the document's to say.
INHERITED = ("PATH", "HOME", "LANG", "TZ")


@dataclass(frozen=True, slots=True)
class PlacedDocument:
    """A YAML document, and where it stands."""

    value: object
    place: str


def read_documents(filename: str) -> list[PlacedDocument]:
    """The YAML documents of a file, or of standard input for "-".

    Raises:
        Refused: the file cannot be read, or is not YAML.
    """
    text = read_given_text(filename, what="pods in")
    found = read_yaml_documents(text, what=filename, max_bytes=MAX_GIVEN_BYTES)
    return [PlacedDocument(one.value, _place(filename, one)) for one in found]


def _place(filename: str, document: YamlDocument) -> str:
    line = min(document.lines.values(), default=None)
    return filename if line is None else f"{filename}, line {line}"


def apply_pods(
    runtime: Runtime,
    documents: Sequence[PlacedDocument],
    note: Callable[[str], None],
    user: PodUser | None = None,
    *,
    dry_run: bool = False,
) -> list[str]:
    """Start what does not run yet, as that user, by default the caller; returns a line a pod.

    With `dry_run` all is checked and nothing is started.

    Raises:
        Refused, Conflict, Unfit, Unavailable: nothing new runs.
    """
    values, places = [one.value for one in documents], [one.place for one in documents]
    manifests = read_pods(values, new_uid, runtime.common.qos_fallback, places)
    runtime.reconcile()
    present = {stored.record.pod.key: stored for stored in runtime.pods.stored() if not stored.status.finished}
    lines: list[str] = []
    wanted: list[PodRecord] = []
    for manifest in manifests:
        key = manifest.record.pod.key
        if key in present:
            _require_same(present[key], manifest.record)
            lines.append(f"pod/{manifest.record.pod.name} unchanged")
        else:
            wanted.append(manifest.record)
            lines.append(f"pod/{manifest.record.pod.name} created")
        for text in manifest.notes:
            note(text)
    # Together with what runs already: each pod by itself may fit.
    for text in warn_over_offer(runtime, wanted):
        note(text)
    # Everything that can refuse comes before the first start.
    require_playable(runtime, wanted, note)
    require_untainted(runtime, wanted)
    admit(wanted, note)
    if dry_run:
        return [f"{line} (dry run)" for line in lines]
    _start_all(runtime, wanted, user)
    return lines


def _start_all(runtime: Runtime, records: list[PodRecord], user: PodUser | None) -> None:
    env = {name: os.environ[name] for name in INHERITED if name in os.environ}
    started: list[PodRecord] = []
    try:
        for record in records:
            runtime.start(record, env=env, user=user)
            started.append(record)
    except SubletError:
        for record in started:
            # Without grace: these have been running for a moment, and the document is refused as a whole.
            if stored := runtime.pods.get(record.pod.uid):
                asyncio.run(runtime.end(stored, 0.0))
        raise


def _require_same(stored: StoredPod, record: PodRecord) -> None:
    pod = stored.record.pod
    if stored.status.terminating:
        raise Conflict(f"pod {pod.key}: it is being ended; try again when it is gone", reason="exists")
    # A UID is given anew with each reading, so it is left out of the comparison.
    same_uid = record.model_copy(update={"pod": record.pod.model_copy(update={"uid": pod.uid})})
    if same_uid != stored.record:
        raise Conflict(
            f"pod {pod.key} runs with another specification, which cannot be changed; "
            f"end it first: sublet delete pod/{pod.name}",
            reason="exists",
        )
