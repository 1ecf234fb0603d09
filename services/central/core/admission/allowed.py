"""An AdmissionReview in, one out that admits (docs/facts/koordinator-profiles.md#review)."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.core.text.document import mapping
from shared.core.text.json_text import read_json_object
from shared.errors import Refused

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """The API server's request, before the object's kind matters."""

    uid: str
    operation: str
    fields: Mapping[str, Any]
    """The request as it was sent."""

    def text(self, name: str) -> str:
        """Return a field of the request; "" if it is not text."""
        found = self.fields.get(name)
        return found if isinstance(found, str) else ""


def read_request(text: bytes, max_bytes: int) -> AdmissionRequest:
    """Parse a request of any content.

    Raises:
        Refused: too large, not JSON, or no AdmissionReview; no answer is possible then.
    """
    document = read_json_object(text, what=KIND, max_bytes=max_bytes)
    request = mapping(document.get("request"), "request")
    uid, operation = request.get("uid"), request.get("operation")
    if document.get("kind") != KIND or not isinstance(uid, str) or not uid or not isinstance(operation, str):
        raise Refused(f"want an {KIND} with request.uid and request.operation", reason="malformed")
    return AdmissionRequest(uid, operation, request)


def answer(response: Document) -> Document:
    """The review that carries a response."""
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def allowed(uid: str, patch: Sequence[Document] = ()) -> Document:
    """Return the review that admits an object, changed by a JSON patch if there is one."""
    response: Document = {"uid": uid, "allowed": True}
    if patch:
        text = json.dumps(list(patch), separators=(",", ":")).encode()
        response |= {"patchType": "JSONPatch", "patch": b64encode(text).decode()}
    return answer(response)
