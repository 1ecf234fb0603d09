"""Which pods `sublet delete` means: exactly one way of naming them, so that no slip ends more than was meant."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.core.text.document import dns_name, mapping
from shared.errors import Refused
from sublet.pods.choosing import DEFAULT_NAMESPACE, POD_KINDS, PodChoice, pod_names
from sublet.pods.label_selector import read_selector
from sublet.pods.pod_files import read_files


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """What was typed."""

    words: tuple[str, ...]
    filenames: tuple[str, ...]
    selector: str
    everything: bool
    recursive: bool


def choice_of(request: DeleteRequest, namespace: str) -> PodChoice:
    """The pods that are meant.

    Raises:
        Refused: none or several of names, files, labels and --all are given, or one of them cannot be read.
    """
    names = pod_names(request.words, command="delete") if tuple(request.words) not in {(k,) for k in POD_KINDS} else ()
    selector = read_selector(request.selector)
    given = [bool(names), bool(request.filenames), bool(selector), request.everything]
    if sum(given) != 1:
        raise Refused(
            "delete: want one of pod/NAME, -f FILE, -l SELECTOR, or --all"
            + ("" if sum(given) == 0 else f"; {sum(given)} of them are given"),
            reason="option",
        )
    if request.filenames:
        found = read_files(request.filenames, recursive=request.recursive)
        return PodChoice(tuple(_names_in(found, namespace)))
    return PodChoice(names, namespace, selector)


def _names_in(documents: Sequence[object], namespace: str) -> Iterator[str]:
    """Namespace/name of the pods in documents; the rest of them need not be one that could run."""
    found = False
    for document in documents:
        if document is None:
            continue
        found = True
        top = mapping(document, "document")
        if top.get("kind") != "Pod":
            raise Refused(f"delete: kind {top.get('kind')!r}: only pods are meant here", reason="kind")
        meta = mapping(top.get("metadata"), "metadata")
        name = dns_name(meta.get("name"), "metadata.name")
        where = meta.get("namespace", namespace or DEFAULT_NAMESPACE)
        yield f"{dns_name(where, 'metadata.namespace', dots=False)}/{name}"
    if not found:
        raise Refused("delete: no document found: want at least one with kind: Pod", reason="malformed")
