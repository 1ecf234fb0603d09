"""`Kube` sends documents to the API server; every call has a limit.

Models of objects are not used: a server that is newer or older than they are must be understood as well, and a field
that Sublet does not know must be written back as it was read.
"""

import functools
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import structlog

from shared.adapters.kube.access import Access, access_of_pod
from shared.core.text.json_text import read_json_object
from shared.errors import Refused, SubletError, Unavailable

log = structlog.get_logger()

Document = dict[str, Any]

CONNECT_S = 5.0
CALL_S = 15.0
"""Longest call but a watch. The library has no limit below five minutes (docs/facts/kubernetes.md#no-limit-of-time)."""
SILENCE_S = 75.0
"""Silence after which a watch is broken: the server sends a bookmark about once a minute."""
# The size of client-go's own pager.
PAGE = 500
MAX_ANSWER_BYTES = 16 << 20
"""One object has 3 MB at most. A page that is larger is asked for again in halves: how large the objects of a page
are is their authors' choice."""
MAX_EVENT_BYTES = 8 << 20
TOKEN_S = 30.0
"""Age after which a pod's token is read again, by a clock that cannot be set: kubelet renews it well before it
expires."""
UNAUTHORIZED = 401
BAD_REQUEST, SERVER_ERROR = 400, 500
_MERGE, _APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


class KubeError(SubletError):
    """A refusal of the API server. `status` is its HTTP status, `said` its Status document."""

    def __init__(self, what: str, status: int, said: Mapping[str, Any]) -> None:
        super().__init__(f"{what}: {said.get('message') or status}", reason=str(said.get("reason") or status))
        self.status, self.said = status, said

    @property
    def causes(self) -> tuple[Mapping[str, Any], ...]:
        """The details' causes, as the server gave them."""
        return tuple((self.said.get("details") or {}).get("causes") or ())


class TooLarge(Unavailable):
    """An answer that is larger than what is read."""


class Gone(SubletError):
    """A watch cannot continue from where it was; list again."""


@dataclass(frozen=True, slots=True)
class KubeRequest:
    """One request, as it is sent."""

    method: str
    path: str
    limit: aiohttp.ClientTimeout
    body: Mapping[str, Any] | None = None
    query: Mapping[str, object] | None = None
    content: str = "application/json"


class Kube:
    """One API server. Paths are as in its reference, with `/api/v1/nodes/{name}` filled in by the caller.

    It is the one of a kubeconfig file, otherwise that of the cluster in which this process runs; the first call finds
    out. After a 401 the credentials are read again, and the request is repeated once if they have changed.
    """

    def __init__(self, kubeconfig: Path | None = None, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Raise Unfit if a kubeconfig is given and the official client, which reads it, is not installed."""
        self._kubeconfig, self._monotonic = kubeconfig, monotonic
        self._read_access = _reader(kubeconfig)
        self._access: Access | None = None
        self._session: aiohttp.ClientSession | None = None
        self._read_at_s = 0.0

    async def get(self, path: str, **query: object) -> Document:
        """One object.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        return await self.call("GET", path, query=query)

    async def list(self, path: str, **query: object) -> Document:
        """A collection, page by page, as one list document with the resource version of its first page.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        whole: Document = {}
        async for page in self.pages(path, **query):
            if not whole:
                whole = page
            else:
                whole["items"] = [*(whole.get("items") or ()), *(page.get("items") or ())]
        return whole

    async def pages(self, path: str, **query: object) -> AsyncGenerator[Document, None]:
        """A collection page by page, each small enough to be read.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        size, more = PAGE, ""
        while True:
            following = {"continue": more} if more else {}
            try:
                page = await self.get(path, limit=size, **query, **following)
            except TooLarge:
                # The server's `continue` token holds for any size of page, so the same page is asked for again.
                if size == 1:
                    raise
                size = max(1, size // 2)
                continue
            yield page
            more = str((page.get("metadata") or {}).get("continue") or "")
            if not more:
                return

    async def create(self, path: str, body: Mapping[str, Any], *, manager: str, **query: object) -> Document:
        """POST a document as a field manager, the name under which an object records who wrote which fields.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        return await self.call("POST", path, body=body, query={"fieldManager": manager, **query})

    async def merge(self, path: str, body: Mapping[str, Any], *, manager: str, **query: object) -> Document:
        """Change what the document names, by a JSON merge patch as a field manager.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        return await self.send(
            KubeRequest("PATCH", path, _within(CALL_S), body, {"fieldManager": manager, **query}, _MERGE)
        )

    async def apply(self, path: str, body: Mapping[str, Any], *, manager: str, **query: object) -> Document:
        """Server-side apply as a field manager; what others own in these fields is taken over.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        # By force: otherwise a field that was set by hand would make every later write fail with 409.
        wanted = {"fieldManager": manager, "force": "true", **query}
        return await self.send(KubeRequest("PATCH", path, _within(CALL_S), body, wanted, _APPLY))

    async def delete(self, path: str, body: Mapping[str, Any] | None = None) -> Document:
        """Delete one object.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        return await self.call("DELETE", path, body=body)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, object] | None = None,
        timeout_s: float = CALL_S,
    ) -> Document:
        """One request and its answer.

        Raises:
            KubeError: the server refused.
            Unavailable: no answer within the time, or none that can be read. Whether it was done is not known.
            Refused: the body is no JSON; nothing was sent.
        """
        return await self.send(KubeRequest(method, path, _within(timeout_s), body, query))

    async def send(self, request: KubeRequest) -> Document:
        """One request and its answer.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        what = f"{request.method} {request.path}"
        try:
            response = await self._known(request)
            text = await _bounded(what, response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"{what}: no answer from the API server: {_words(error)}") from error
        return _answer(what, response.status, text)

    async def watch(self, path: str, version: str, **query: object) -> AsyncGenerator[Document, None]:
        """Yield events of a collection after a resource version, including bookmarks; end when the server ends the
        watch.

        Raises:
            Gone: the version is too old (docs/facts/kubernetes.md#watch-of-an-old-version).
            KubeError: the server refused.
            Unavailable: the connection broke, or fell silent.
        """
        what = f"watch {path}"
        wanted = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, **query}
        # No limit for the whole: a watch is meant to last. Silence is what ends it.
        limit = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=SILENCE_S)
        try:
            response = await self._known(KubeRequest("GET", path, limit, query=wanted))
            if response.status != 200:
                _answer(what, response.status, await _bounded(what, response))
            try:
                async for line in response.content:
                    yield _event(what, line)
            finally:
                response.close()
        except KubeError as error:
            # It also arrives as an event within an answer of 200, so it is detected here and not by the status
            # (docs/facts/kubernetes.md#watch-of-an-old-version).
            if error.status == 410:
                raise Gone(str(error)) from error
            raise
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, Refused) as error:
            raise Unavailable(f"{what}: broken off: {_words(error)}") from error

    async def close(self) -> None:
        """Close all connections; a later call reopens them."""
        session, self._session, self._access = self._session, None, None
        if session is not None:
            await session.close()

    async def _known(self, request: KubeRequest) -> aiohttp.ClientResponse:
        """Return the answer to a request, which is repeated if it was signed with an outdated token."""
        # The token that was used, to see after a refusal whether there is a newer one.
        shown = await self._ready()
        response = await self._sent(request, shown)
        if response.status != UNAUTHORIZED:
            return response
        newer = await self._renewed(shown)
        # The same credentials once more would only be refused once more.
        if shown.authorization == newer.authorization:
            return response
        # The unread body of the refusal would keep its connection from the pool.
        response.release()
        return await self._sent(request, newer)

    async def _ready(self) -> Access:
        """Return access with a token that is not older than `TOKEN_S`; a kubeconfig is read again only after a 401."""
        known = self._access
        if known is None:
            self._access = known = await self._read_access()
            self._read_at_s = self._monotonic()
        elif self._kubeconfig is None and self._monotonic() - self._read_at_s >= TOKEN_S:
            known = await self._renewed(known)
        return known

    async def _renewed(self, known: Access) -> Access:
        """Read the credentials again. If they cannot be read now, the old ones stay in use."""
        # Also where the reading fails: a broken mount is tried again after `TOKEN_S`, not at every call.
        self._read_at_s = self._monotonic()
        try:
            known = self._access = await self._read_access()
        except Unavailable as error:
            log.warning("credentials.unread", why=str(error))
        return known

    async def _sent(self, request: KubeRequest, access: Access) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = access.open_session()
        headers = {"Accept": "application/json", "Content-Type": request.content}
        if access.authorization:
            headers["Authorization"] = access.authorization
        return await self._session.request(
            request.method,
            access.server + request.path,
            params={key: str(value) for key, value in (request.query or {}).items()},
            headers=headers,
            data=_body(request),
            timeout=request.limit,
            server_hostname=access.server_name,
            proxy=access.proxy,
        )


def _reader(kubeconfig: Path | None) -> Callable[[], Awaitable[Access]]:
    if kubeconfig is None:
        return _read_access_of_pod
    from shared.adapters.kube.kubeconfig import access_by  # the official client, which a pod does without

    return functools.partial(access_by, kubeconfig)


async def _read_access_of_pod() -> Access:
    return access_of_pod()


def _within(seconds: float) -> aiohttp.ClientTimeout:
    """A limit for each call, since no layer below has one that is short enough.

    Facts: docs/facts/kubernetes.md#no-limit-of-time.
    """
    return aiohttp.ClientTimeout(total=seconds, connect=CONNECT_S)


def _body(request: KubeRequest) -> str | None:
    try:
        return None if request.body is None else json.dumps(dict(request.body))  # json takes no other mapping
    except (TypeError, ValueError) as error:
        raise Refused(f"{request.method} {request.path}: a body that is no JSON: {error}") from error


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _bounded(what: str, response: aiohttp.ClientResponse) -> bytes:
    """The body of an answer.

    Raises:
        TooLarge: it is larger than what is read; the connection is closed.
    """
    text = bytearray()
    try:
        async for chunk in response.content.iter_any():
            text += chunk
            if len(text) > MAX_ANSWER_BYTES:
                raise TooLarge(f"{what}: more than {MAX_ANSWER_BYTES} bytes", reason="too_large")
    except BaseException:
        response.close()
        raise
    return bytes(text)


def _event(what: str, line: bytes) -> Document:
    # Bounded, for the size of an object is its author's choice.
    event = read_json_object(line, what=what, max_bytes=MAX_EVENT_BYTES)
    if event.get("type") == "ERROR":
        said = event.get("object")
        said = said if isinstance(said, dict) else {}
        code = said.get("code")
        raise KubeError(what, code if isinstance(code, int) else SERVER_ERROR, said)
    return event


def _answer(what: str, status: int, text: bytes) -> Document:
    try:
        document = read_json_object(text or b"{}", what=what, max_bytes=MAX_ANSWER_BYTES)
    except Refused as refusal:
        if status < BAD_REQUEST:
            raise Unavailable(f"{what}: no answer that can be read from the API server: {refusal}") from None
        # A proxy before the server answers with its own page; its status counts all the same.
        document = {"message": text[:200].decode(errors="replace")}
    if status >= BAD_REQUEST:
        raise KubeError(what, status, document)
    return document
