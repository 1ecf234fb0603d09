"""Identifies the API server's front proxy, the only client that the metrics API answers.

The API server has already authenticated and authorized the user. Facts: docs/facts/kubernetes.md#metrics-apis.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.core.text.document import mapping, text, words
from shared.core.text.json_text import read_json
from shared.errors import Refused

CONFIG_MAP, NAMESPACE = "extension-apiserver-authentication", "kube-system"
MAX_AUTHORITY_BYTES = 64 << 10
MAX_NAMES_BYTES = 16 << 10
_AUTHORITY, _NAMES = "requestheader-client-ca-file", "requestheader-allowed-names"


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The authorities of its certificate in PEM, and the names that it may have; without any every name is good."""

    authorities: str
    names: frozenset[str]

    def allows(self, client: str | None) -> bool:
        """Whether one of this name is the proxy, given that its certificate is of these authorities."""
        return client is not None and (not self.names or client in self.names)


def front_proxy_of(document: Mapping[str, Any]) -> FrontProxy:
    """Read the proxy from the ConfigMap.

    Raises:
        Refused: it names none, or is unreadable.
    """
    data = mapping(document.get("data"), "data")
    authorities = text(data.get(_AUTHORITY, ""), f"data.{_AUTHORITY}")
    if not 0 < len(authorities) <= MAX_AUTHORITY_BYTES:
        raise Refused(
            f"ConfigMap {NAMESPACE}/{CONFIG_MAP}, {_AUTHORITY}: {len(authorities)} bytes, want 1 to "
            f"{MAX_AUTHORITY_BYTES}; the API server needs its flags --requestheader-client-ca-file and "
            "--proxy-client-cert-file to pass requests on",
            reason="front_proxy",
        )
    given = text(data.get(_NAMES, "[]"), f"data.{_NAMES}")
    names = read_json(given, what=f"data.{_NAMES}", max_bytes=MAX_NAMES_BYTES)
    return FrontProxy(authorities, frozenset(words(names, f"data.{_NAMES}")))
