"""The release as Helm stores it in a Secret: the chart's version and defaults, and the user's values.

Format: docs/facts/kubernetes.md#how-helm-keeps-a-release. The text comes from another program, so its size is bounded
before and after decompression.
"""

import base64
import binascii
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.core.text.json_text import read_json_object
from shared.errors import Refused

MAX_PACKED_BYTES, MAX_UNPACKED_BYTES = 4 << 20, 64 << 20
"""The API server keeps 1.5 MiB at most in one object; text of charts packs to a tenth."""
_GZIP = 16 + zlib.MAX_WBITS
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HelmRelease:
    """What is installed."""

    version: str
    """Of its chart."""
    defaults: Document
    """The values of that chart."""
    given: Document
    """The values that somebody has given over them."""


def deployed(secrets: Iterable[Document], name: str) -> Document | None:
    """The Secret of the newest deployed revision of a release; None where there is none."""
    found = [
        one for one in secrets if _labels(one).items() >= {"owner": "helm", "name": name, "status": "deployed"}.items()
    ]
    return max(found, key=lambda one: _number(_labels(one).get("version")), default=None)


def read_release(secret: Document) -> HelmRelease:
    """What a Secret of Helm's says.

    Raises:
        Refused: `too_large` or `malformed`: it is not as Helm writes it.
    """
    data = secret.get("data")
    packed = data.get("release") if isinstance(data, dict) else None
    if not isinstance(packed, str) or len(packed) > MAX_PACKED_BYTES:
        raise Refused(f"release: want text of at most {MAX_PACKED_BYTES} bytes in data.release", reason="malformed")
    try:
        unpacked = _unpacked(base64.b64decode(base64.b64decode(packed, validate=True), validate=True))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise Refused(f"release: not as Helm packs it ({error})", reason="malformed") from error
    found = read_json_object(unpacked, what="release", max_bytes=MAX_UNPACKED_BYTES)
    chart = _mapping(found.get("chart"))
    metadata = _mapping(chart.get("metadata"))
    return HelmRelease(str(metadata.get("version", "")), _mapping(chart.get("values")), _mapping(found.get("config")))


def _unpacked(data: bytes) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    found = stream.decompress(data, MAX_UNPACKED_BYTES)
    if stream.unconsumed_tail:
        raise Refused(f"release: unpacks to more than {MAX_UNPACKED_BYTES} bytes", reason="too_large")
    return found


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _labels(secret: Document) -> dict[str, Any]:
    return _mapping(_mapping(secret.get("metadata")).get("labels"))


def _number(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 9 else 0
