"""One event as an HTTP request, and the meaning of an answer. Pure.

CloudEvents 1.0, HTTP binding, binary mode: the attributes are the same `ce-` headers as on NATS. Signed according to
Standard Webhooks, HMAC-SHA256 over id, time and body, so a receiver can verify it with that standard's libraries.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shared.contracts.bus.cloudevents import CONTENT_TYPE, event_headers
from shared.contracts.eviction import EvictionEvent
from shared.core.backoff import delay_s
from shared.errors import Refused

SECRET_PREFIX = "whsec_"  # noqa: S105 - how the standard marks a secret
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64
RETRY_BASE_S, RETRY_CAP_S = 1.0, 300.0
MAX_RETRY_AFTER_S = 3600.0
GONE = 410
BROKEN = 499
"""Stands for a failure of our own with one event."""
# Timeout, too early, too many: the other 4xx speak of the event itself.
_AGAIN = (408, 425, 429)

Verdict = Literal["done", "again", "dead", "stop"]
"""done: taken. again: try later. dead: the receiver will never take this one. stop: it wants no more at all."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP status; 0 where there was none. `retry_after_s` as the receiver asked."""

    status: int
    retry_after_s: float | None = None
    tries: int = 1
    """How many such answers make a refusal final."""
    why: str = ""
    """Without a status: who did not answer, and why."""

    @property
    def words(self) -> str:
        """What came of the request, for a person."""
        return f"answer {self.status}" if self.status else self.why or "no answer"


def read_secret(text: str) -> bytes:
    """The key behind "whsec_<base64>".

    Raises:
        Refused: not such a text, or too short or long to be a secret.
    """
    try:
        key = base64.b64decode(text.strip().removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise Refused(f"webhook secret: not base64 ({error}); want {SECRET_PREFIX}<base64>", reason="secret") from error
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise Refused(
            f"webhook secret: {len(key)} bytes, want {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES}; make one with: "
            "openssl rand -base64 32",
            reason="secret",
        )
    return key


def signature(key: bytes, identity: str, unix_s: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    content = f"{identity}.{unix_s}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()}"


def request_headers(
    event: EvictionEvent, body: bytes, trace: Mapping[str, str], key: bytes | None, unix_s: int
) -> dict[str, str]:
    """The headers of the request for an event: all from the event itself, none as it came; unsigned without a key.

    A node may put another one's id into an event of its own, so the webhook's id names the node, too.
    """
    headers = {**event_headers(event), **trace}
    headers["content-type"] = headers.pop("ce-datacontenttype", CONTENT_TYPE)  # in this binding it is that
    if key is not None:
        identity = f"{event.node}/{event.event_id}"
        headers |= {
            "webhook-id": identity,
            "webhook-timestamp": str(unix_s),
            "webhook-signature": signature(key, identity, unix_s, body),
        }
    return headers


def verdict(answer: HttpAnswer, tries: int = 1, *, known: bool = False) -> Verdict:
    """What an answer to the n-th try means: trouble that may pass is tried again, a refusal of this one event is not.

    `known`: the event before it was refused in the same way; then this one is not tried as often.
    """
    if 200 <= answer.status < 300:
        return "done"
    if answer.status == GONE:
        return "stop"
    if answer.status == 0 or answer.status >= 500 or answer.status in _AGAIN:
        return "again"
    return "dead" if known or tries >= answer.tries else "again"


def wait_s(answer: HttpAnswer, tries: int, roll: float) -> float:
    """Seconds before the next try: what the receiver asked for, within reason, else longer and longer."""
    if answer.retry_after_s is not None:
        # A date in the past, and a receiver that asks for years.
        return min(max(0.0, answer.retry_after_s), MAX_RETRY_AFTER_S)
    return delay_s(tries, base_s=RETRY_BASE_S, cap_s=RETRY_CAP_S, roll=roll)
