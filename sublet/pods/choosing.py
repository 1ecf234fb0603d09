"""Selects pods of this host for a command: by name, namespace and labels."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.adapters.local.runtime import Runtime
from shared.adapters.local.stored_pod import StoredPod
from shared.core.text.document import dns_name
from shared.errors import Refused
from sublet.pods.label_selector import Selector, admits

POD_KINDS = frozenset({"pod", "pods", "po"})
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class PodChoice:
    """The pods that are meant: those with these names, else all that namespace and labels admit."""

    names: tuple[str, ...] = ()
    namespace: str = ""
    """Empty: of every namespace; for a name without one, `default`."""
    selector: Selector = ()


def pod_names(words: Sequence[str], *, command: str) -> tuple[str, ...]:
    """The names among words such as `pods`, `pod web db`, `pod/web pod/db` or `web`; the kind may be left out.

    Raises:
        Refused: another kind than a pod, or an empty name.
    """
    kinds = [word.partition("/")[0] for word in words if "/" in word]
    first, rest = (words[0], words[1:]) if words else ("", ())
    plain = list(rest if first in POD_KINDS else words)
    for word in plain:
        kind, slash, name = word.partition("/")
        if not word or (slash and not name):
            raise Refused(f"{command}: {word!r}: want the name of a pod, as pod/web", reason="name")
        if kind in ("node", "nodes", "cnr", "deployment", "deployments", "deploy", "job", "jobs", "svc", "service"):
            raise Refused(f"{command}: {word!r}: only pods are meant here, as pod/web", reason="kind")
    if first in POD_KINDS and kinds:
        raise Refused(f"{command}: {' '.join(words)!r}: name the kind once: pod a b, or pod/a pod/b", reason="kind")
    return tuple(plain)


def chosen_pods(runtime: Runtime, choice: PodChoice) -> list[StoredPod]:
    """Those pods, each once.

    Raises:
        Refused: no pod has that name, or names and labels are asked for at once.
        Unavailable: the store cannot be read.
    """
    if choice.names and choice.selector:
        raise Refused("names and --selector: want one of them", reason="option")
    if choice.namespace:
        dns_name(choice.namespace, "--namespace", dots=False)
    runtime.reconcile()
    if choice.names:
        found = [runtime.pods.find(name, choice.namespace or DEFAULT_NAMESPACE) for name in choice.names]
        return list({stored.record.pod.uid: stored for stored in found}.values())
    return [
        stored
        for stored in runtime.pods.stored()
        if choice.namespace in ("", stored.record.pod.namespace) and admits(choice.selector, stored.record.pod.labels)
    ]
