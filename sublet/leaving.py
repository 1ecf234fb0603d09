"""Whether an agent that stops comes back: only then may its node keep what Sublet has set."""

from shared.adapters.kube_client import Kube, KubeError
from shared.errors import Unavailable

FORBIDDEN = (401, 403)
"""The rights go with the installation, at the same moment."""
NOT_FOUND = 404


async def is_uninstalled(kube: Kube, namespace: str, daemonset: str) -> bool:
    """Whether what makes the agents is gone, or on its way; an update leaves it where it is.

    Who cannot be asked says nothing: then the node keeps what it has.
    """
    try:
        found = await kube.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{daemonset}")
    except KubeError as error:
        return error.status in (*FORBIDDEN, NOT_FOUND)
    except Unavailable:
        return False
    return "deletionTimestamp" in found["metadata"]
