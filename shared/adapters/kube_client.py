"""The Kubernetes API as documents: transport, trust and tokens of the official client, a time limit on every call.

The client's models are not used: a server that is newer or older than them must still be understood, and what Sublet
does not know must come back as it was.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from shared.errors import SubletError, Unavailable

Document = dict[str, Any]

CONNECT_S = 5.0
CALL_S = 15.0
"""Longest call but a watch. The client itself has no limit below five minutes (notes/reliability.md section 2, M13)."""
SILENCE_S = 75.0
"""A watch on which nothing comes for so long is broken: the server sends a bookmark about once a minute."""
PAGE = 500
_MERGE, _APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


class KubeError(SubletError):
    """The API server said no. `status` is its HTTP status, `said` its Status document."""

    def __init__(self, what: str, status: int, said: Mapping[str, Any]) -> None:
        super().__init__(f"{what}: {said.get('message') or status}", reason=str(said.get("reason") or status))
        self.status, self.said = status, said

    @property
    def causes(self) -> tuple[Mapping[str, Any], ...]:
        """The details' causes, as the server gave them."""
        return tuple((self.said.get("details") or {}).get("causes") or ())


class Gone(SubletError):
    """A watch cannot go on from where it was; list again."""


class Kube:
    """One API server. Paths are as in its reference, `/api/v1/nodes/{name}` filled in by the caller.

    It is that of a kubeconfig file, else that of the cluster in which this process runs; the first call finds out.
    """

    def __init__(self, kubeconfig: Path | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._client: ApiClient | None = None

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
        whole = await self.get(path, limit=PAGE, **query)
        more = whole.get("metadata", {}).get("continue")
        while more:
            page = await self.get(path, limit=PAGE, **query, **{"continue": more})
            whole["items"] += page["items"]
            more = page.get("metadata", {}).get("continue")
        return whole

    async def create(self, path: str, body: Mapping[str, Any], *, manager: str, **query: object) -> Document:
        """POST a document as a field manager, the name under which an object tells who wrote what of it.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        return await self.call("POST", path, body=body, query={"fieldManager": manager, **query})

    async def merge(self, path: str, body: Mapping[str, Any], *, manager: str, **query: object) -> Document:
        """Change what the document names, by a JSON merge patch as a field manager.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        return await self.call("PATCH", path, body=body, query={"fieldManager": manager, **query}, content=_MERGE)

    async def apply(self, path: str, body: Mapping[str, Any], *, manager: str, **query: object) -> Document:
        """Server-side apply as a field manager; what others own in these fields is taken over.

        Raises:
            KubeError, Unavailable: as `call`.
        """
        return await self.call(
            "PATCH", path, body=body, query={"fieldManager": manager, "force": "true", **query}, content=_APPLY
        )

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
        content: str = "application/json",
        timeout_s: float = CALL_S,
    ) -> Document:
        """One request and its answer.

        Raises:
            KubeError: the server refused.
            Unavailable: no answer within the time, or none that can be read. Whether it was done is not known.
        """
        what = f"{method} {path}"
        limit = aiohttp.ClientTimeout(total=timeout_s, connect=CONNECT_S)
        try:
            response = await self._send(method, path, body, query, content, limit)
            text = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"{what}: no answer from the API server: {_words(error)}") from error
        return _answer(what, response.status, text)

    async def watch(self, path: str, version: str, **query: object) -> AsyncGenerator[Document, None]:
        """Events of a collection after a resource version, bookmarks among them; ends when the server ends it.

        Raises:
            Gone: the version is too old (notes/reliability.md section 2, M12: it comes as an event, after a 200).
            KubeError: the server refused.
            Unavailable: the connection broke, or fell silent.
        """
        what = f"watch {path}"
        wanted = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, **query}
        limit = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=SILENCE_S)
        try:
            response = await self._send("GET", path, None, wanted, "application/json", limit)
            if response.status != 200:
                _answer(what, response.status, await response.read())
            try:
                async for line in response.content:
                    yield _event(what, line)
            finally:
                response.close()
        except KubeError as error:
            if error.status == 410:
                raise Gone(str(error)) from error
            raise
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Unavailable(f"{what}: broken off: {_words(error)}") from error

    async def close(self) -> None:
        """Close all connections; a call after this opens them anew."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, object] | None,
        content: str,
        limit: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        client = self._client = self._client or await _client_of(self._kubeconfig)
        request = await client.param_serialize(
            method, path, query_params=[(key, str(value)) for key, value in (query or {}).items()],
            header_params={"Accept": "application/json", "Content-Type": content},
            body=dict(body) if body is not None else None, auth_settings=["BearerToken"])  # fmt: skip
        answer = await client.call_api(*request, _request_timeout=limit)
        response: aiohttp.ClientResponse = answer.response
        return response


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _event(what: str, line: bytes) -> Document:
    event: Document = json.loads(line)
    if event.get("type") == "ERROR":
        said = event.get("object") or {}
        raise KubeError(what, int(said.get("code") or 500), said)
    return event


def _answer(what: str, status: int, text: bytes) -> Document:
    try:
        document = json.loads(text) if text else {}
    except ValueError:
        document = {"message": text[:200].decode(errors="replace")}
    if not isinstance(document, dict):
        raise Unavailable(f"{what}: the API server answers no document")
    if status >= 400:
        raise KubeError(what, status, document)
    return document


async def _client_of(kubeconfig: Path | None) -> ApiClient:
    configuration = Configuration()
    try:
        if kubeconfig is not None:
            await load_kube_config(str(kubeconfig), client_configuration=configuration, persist_config=False)
        else:
            load_incluster_config(client_configuration=configuration)
    except (ConfigException, OSError) as error:
        where = kubeconfig or "the service account of this pod"
        raise Unavailable(f"no way to the API server by {where}: {error}; set `kubeconfig`",
                          reason="kubeconfig") from error  # fmt: skip
    return ApiClient(configuration)
