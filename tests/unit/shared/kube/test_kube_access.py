"""What a pod is given of the API server, and what is said where it is not."""

from pathlib import Path

import pytest

from shared.adapters.kube import access
from shared.adapters.kube.access import Access, access_of_pod
from shared.errors import Unavailable

HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The token's file in a pod whose API server is at 10.0.0.1."""
    file = tmp_path / "token"
    file.write_text("t0\n")
    monkeypatch.setattr(access, "TOKEN", file)
    monkeypatch.setenv(HOST, "10.0.0.1")
    monkeypatch.setenv(PORT, "443")
    return file


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
@pytest.mark.usefixtures("token")
def test_a_pod_asks_the_server_of_its_cluster_by_its_own_token(
    monkeypatch: pytest.MonkeyPatch, host: str, server: str
) -> None:
    monkeypatch.setenv(HOST, host)
    assert access_of_pod() == Access(server, "Bearer t0", str(access.AUTHORITY))


@pytest.mark.usefixtures("token")
def test_a_pod_goes_to_its_server_past_every_proxy() -> None:
    """The address is the cluster's own, which a proxy outside does not know."""
    found = access_of_pod()
    assert not found.by_environment
    assert found.proxy is None


@pytest.mark.parametrize("gone", [HOST, PORT])
@pytest.mark.usefixtures("token")
def test_outside_of_a_pod_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    monkeypatch.delenv(gone)
    with pytest.raises(Unavailable, match="KUBERNETES_SERVICE_HOST and _PORT are not set; set `kubeconfig`"):
        access_of_pod()


@pytest.mark.parametrize("text", [b"", b"\n", b"a\nb", "ä".encode(), b"\xff", b"t" * (access.MAX_TOKEN_BYTES + 1)])
def test_what_is_no_token_is_never_shown(token: Path, text: bytes) -> None:
    token.write_bytes(text)
    with pytest.raises(Unavailable, match="no way to the API server"):
        access_of_pod()
