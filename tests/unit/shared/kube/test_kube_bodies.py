"""What is sent to the API server is JSON, or refused before anything is sent."""

from types import MappingProxyType
from typing import Any

import pytest

from shared.adapters.kube import client
from shared.adapters.kube.access import Access
from shared.errors import Refused, Unavailable


class Session:
    """Keeps what is sent, and answers nothing."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def request(self, *_: object, data: str | None, **__: object) -> object:
        self.sent.append(data)
        raise OSError


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    async def given() -> Access:
        return Access("https://10.0.0.1:443", "Bearer t0", "")

    session = Session()
    monkeypatch.setattr(client, "_read_access_of_pod", given)
    monkeypatch.setattr(Access, "open_session", lambda _access: session)
    return session


async def test_a_body_may_be_any_mapping(session: Session) -> None:
    with pytest.raises(Unavailable):
        await client.Kube().call("POST", "/p", body=MappingProxyType({"a": 1}))
    assert session.sent == ['{"a": 1}']


@pytest.mark.parametrize("body", [{"a": object()}, {"a": MappingProxyType({"b": 1})}])
async def test_a_body_that_is_no_json_is_refused(session: Session, body: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="POST /p: a body that is no JSON"):
        await client.Kube().call("POST", "/p", body=body)
    assert session.sent == []
