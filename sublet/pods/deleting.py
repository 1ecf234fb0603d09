"""Selects the pods of `sublet delete`, with exactly one way of naming them, so that a slip does not end more than
intended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.core.text.document import dns_name, mapping
from shared.errors import Refused
from sublet.pods.applying import PlacedDocument
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


def _names_in(documents: Sequence[PlacedDocument], namespace: str) -> Iterator[str]:
    """Namespace/name of the pods in documents; the rest of them need not be one that could run."""
    for one in documents:
        if one.value is None:
            continue
        top = mapping(one.value, f"{one.place}: document")
        if top.get("kind") != "Pod":
            raise Refused(f"{one.place}: kind {top.get('kind')!r}: only pods are meant here", reason="kind")
        meta = mapping(top.get("metadata"), f"{one.place}: metadata")
        name = dns_name(meta.get("name"), f"{one.place}: metadata.name")
        space = dns_name(
            meta.get("namespace", namespace or DEFAULT_NAMESPACE), f"{one.place}: metadata.namespace", dots=False
        )
        yield f"{space}/{name}"
