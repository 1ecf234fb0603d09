"""`access_by` reads a kubeconfig file with the official client, which supports all its ways to log in."""

from pathlib import Path

from yaml import YAMLError

from shared.adapters.kube.access import Access
from shared.adapters.kube.aio import ConfigException, Configuration, load_kube_config
from shared.errors import Unavailable

BEARER = "BearerToken"
"""The client's name for what is shown in the header `Authorization`."""


async def access_by(file: Path) -> Access:
    """The API server of the file's current context.

    Raises:
        Unavailable: the file cannot be read.
    """
    read = Configuration()
    try:
        await load_kube_config(str(file), client_configuration=read, persist_config=False)
    except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, YAMLError) as error:
        raise Unavailable(
            f"no way to the API server by {file}: {_why(error)}; set `kubeconfig`", reason="kubeconfig"
        ) from error
    return Access(
        server=read.host.rstrip("/"),
        authorization=str(read.api_key.get(BEARER) or ""),
        authority=read.ssl_ca_cert,
        certificate=read.cert_file,
        key=read.key_file,
        verified=read.verify_ssl,
        server_name=read.tls_server_name,
        proxy=read.proxy,
        by_environment=True,
    )


def _why(error: Exception) -> str:
    """Return the reason; the client reads a file of any shape, and fails with its own errors if it is no kubeconfig."""
    if isinstance(error, ConfigException):
        return str(error)
    return (error.strerror or "it cannot be read").lower() if isinstance(error, OSError) else "it is no kubeconfig"
