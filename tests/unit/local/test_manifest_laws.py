"""Pod documents of whatever shape: each is read, or refused with a reason."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_manifest import RECLAIMED, SHARED, UID, _document

from shared.core.pods.manifest import read_pod
from shared.errors import Refused

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(
    ["..", "/", "v1", "Pod", "1", "-1", "1Gi", "reclaimed_cores", "\0"]
)  # fmt: skip
KEYS = st.text(max_size=4) | st.sampled_from(
    ["apiVersion", "kind", "metadata", "spec", "name", "containers", "resources", "requests", "cpu", "command", "env"]
)
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


@given(ANYTHING)
def test_whatever_is_given_it_is_read_or_refused(document: dict[str, Any] | list[Any] | None) -> None:
    _read_or_refuse(document)


@given(st.sampled_from([SHARED, RECLAIMED]), st.lists(st.integers(0, 9), min_size=1, max_size=5), ANYTHING)
def test_a_good_document_with_anything_in_one_place_is_read_or_refused(
    text: str, way: list[int], value: dict[str, Any] | int | list[Any] | None
) -> None:
    document = _document(text)
    here: Any = document
    for step in way:
        keys = list(here) if isinstance(here, dict) else list(range(len(here))) if isinstance(here, list) else []
        if not keys:
            break
        parent, key = here, keys[step % len(keys)]
        here = here[key]
    parent[key] = value
    _read_or_refuse(document)


def _read_or_refuse(document: dict[str, Any] | list[Any] | None) -> None:
    try:
        pod = read_pod(document, UID).record.pod
    except Refused:
        return
    assert "/" not in pod.name + pod.namespace
    assert ".." not in pod.name
