"""Pods and nodes that may have figures, by what series are about."""

from collections.abc import Mapping
from typing import Any

from services.central.core.custom_metrics.cluster_objects import MeteredSeen, metered_node_of, metered_pod_of
from services.central.core.custom_metrics.front_proxy import CONFIG_MAP, NAMESPACE, FrontProxy, front_proxy_of
from services.central.core.custom_metrics.series import MeteredObject
from shared.core.api_kind import CONFIG_MAPS, NODES, PODS
from shared.errors import Unavailable
from shared.ports import ObjectMirror, Objects


class MetricsMirrors:
    """What the metrics API needs of the API server's objects; before the first list nothing is known."""

    def __init__(self, objects: Objects) -> None:
        self._seen: dict[MeteredObject, MeteredSeen] = {}
        self._abouts: dict[str, MeteredObject] = {}
        self._uids: dict[MeteredObject, str] = {}
        self._proxy = objects.mirror_one(CONFIG_MAPS, CONFIG_MAP, front_proxy_of, lambda: None, namespace=NAMESPACE)
        self._metered = [
            objects.mirror_each(PODS, metered_pod_of, self._index),
            objects.mirror_each(NODES, metered_node_of, self._index),
        ]

    @property
    def every(self) -> list[ObjectMirror[Any]]:
        """All of them, to be run."""
        return [self._proxy, *self._metered]

    @property
    def failure(self) -> str:
        """Why no request can be answered yet; "" once everything was listed."""
        try:
            for mirror in self.every:
                _ = mirror.objects
        except Unavailable as error:
            return str(error)
        unread = next(iter(self._proxy.unread.values()), "")
        if self.proxy is None:
            return unread or f"there is no ConfigMap {NAMESPACE}/{CONFIG_MAP}, by which the front proxy is known"
        return ""

    @property
    def proxy(self) -> FrontProxy | None:
        """The only client that is answered; None: none is known, so none is answered."""
        try:
            return next(iter(self._proxy.objects.values()), None)
        except Unavailable:
            return None

    def seen(self, about: MeteredObject) -> MeteredSeen | None:
        """Return a pod or node of the cluster; None if it does not exist."""
        return self._seen.get(about)

    def labels(self, about: MeteredObject) -> Mapping[str, str] | None:
        """Return the labels of a pod or node; None if it does not exist."""
        found = self._seen.get(about)
        return None if found is None else found.labels

    def pages(self) -> list[MeteredSeen]:
        """The pods that show metrics of their own, by namespace and name."""
        return sorted((one for one in self._seen.values() if one.page), key=lambda one: one.about[1:])

    def _index(self, uid: str, seen: MeteredSeen | None) -> None:
        before = self._abouts.pop(uid, None)
        # The next pod of a name may be seen before the last one is seen to go.
        if before is not None and self._uids.get(before) == uid:
            del self._seen[before], self._uids[before]
        if seen is not None:
            self._seen[seen.about], self._uids[seen.about], self._abouts[uid] = seen, uid, seen.about
