"""This module imports the asynchronous half of the Kubernetes client without the synchronous one.

The package's own `__init__` imports both, and with the synchronous half requests, OAuth and websockets: seven packages
that nothing here calls, in a process that runs as root. They are not in the image either.
"""

import importlib.util
import sys

from shared.errors import Unfit

UNUSED = ("requests", "requests_oauthlib", "oauthlib", "websocket", "charset_normalizer", "certifi", "durationpy")
"""Modules of the packages that only the synchronous half needs."""


def _without_synchronous_half() -> None:
    """Put the package in place without running its `__init__`; where somebody has imported it already, it stays.

    Raises:
        Unfit: it is not installed.
    """
    spec = importlib.util.find_spec("kubernetes")
    if spec is None:
        # Not an ImportError, so that importing an adapter of the API server gives one line that says what to do.
        raise Unfit("the Kubernetes client is not installed: pip install 'sublet[kube]'", reason="no_kubernetes")
    if "kubernetes" not in sys.modules:
        sys.modules["kubernetes"] = importlib.util.module_from_spec(spec)


_without_synchronous_half()

from kubernetes.aio.client import Configuration  # noqa: E402
from kubernetes.aio.config import ConfigException, load_kube_config  # noqa: E402

__all__ = ["ConfigException", "Configuration", "load_kube_config"]
