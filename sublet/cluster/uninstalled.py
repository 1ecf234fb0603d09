"""`is_uninstalled` distinguishes an uninstallation from an update: nodes are restored only after an uninstallation."""

from shared.adapters.kube.client import Kube, KubeError
from shared.errors import Unavailable

NOT_FOUND = 404


async def is_uninstalled(kube: Kube, namespace: str, daemonset: str) -> bool:
    """Whether what makes the agents is gone, or on its way; an update leaves it where it is.

    Only the API server's own word for it counts: that the DaemonSet is not found, or is being deleted. Who may not
    ask, gets half an answer or none, has learned nothing. The rights go with an installation at the same moment, so
    this is often so at its end: then the Job of the uninstall has the node given back.
    """
    try:
        found = await kube.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{daemonset}")
    except KubeError as error:
        return error.status == NOT_FOUND and error.reason == "NotFound"  # a proxy on the way says 404, too
    except Unavailable:
        return False
    meta = found.get("metadata")
    return isinstance(meta, dict) and meta.get("name") == daemonset and bool(meta.get("deletionTimestamp"))
