"""Sublet on a cluster as its users have it: installed from the chart, and asked with kubectl."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from rig_parts import until
from slow_machines import patience_s

from kube_rig.clients import Clients, CommandError
from kube_rig.node import NODE
from shared.contracts.kube.quantities import parse_units
from shared.contracts.pod import RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
NAMESPACE, RELEASE = "sublet-system", "sublet"
LABELS = ("pod-security.kubernetes.io/enforce=privileged", "sublet.io/system-cores=allowed")
WORKLOADS = ("statefulset/sublet-bus", "deployment/sublet-central", "deployment/sublet-events", "daemonset/sublet-node")
VALUES = {
    "image": {"name": "sublet", "tag": "test", "pullPolicy": "Never"},
    "scheduler": {"enabled": False},  # the cluster's own has the profile
    "bus": {"storage": ""},  # a cluster of the tests has no volumes to hand out
}
OF_EVERY_NAMESPACE = ("configmap/kube-root-ca.crt", "serviceaccount/default")
READY_LIMIT_S, POD_LIMIT_S, GONE_LIMIT_S = 120.0, 60.0, 90.0


@dataclass(slots=True)
class Installation:
    """An installation, and what a user sees of it."""

    cluster: Clients
    transcript: list[str] = field(default_factory=list)
    """What was typed, and what was said to it."""
    agent_address: str = ""
    """Of the agent's pod, for who asks while the API server is away."""
    patience: float = 1.0
    """How much slower than this machine the node may be."""
    helm_words: Sequence[str] = ()
    """Further ones of an installation."""
    began_at: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z")
    """From when on evictions are this story's: a node tells a new hub what it told the one before."""

    def install(self, values: Mapping[str, Any], *, mode: str | None = "enforce") -> None:
        """As docs/kubernetes.md says, and wait until all of it is ready; without a mode the chart's own holds.

        Raises:
            CommandError: something was refused.
            TimeoutError: something does not come up, or no offer appears.
        """
        # Of tests before this one, in one request: kubectl's own way is one for each, a few a second.
        self.cluster.kubectl("delete", "--raw", "/api/v1/namespaces/default/events")
        self.cluster.wait_gone(f"namespace/{NAMESPACE}")
        self.type("create", "namespace", NAMESPACE)
        self.cluster.kubectl("label", "namespace", NAMESPACE, *LABELS)
        words = ["install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", "-", *self.helm_words]
        switch = {} if mode is None else {"mode": mode}
        self.transcript.append("$ helm install sublet deploy/k8s/chart -n sublet-system …\n")
        self.cluster.helm(*words, given=yaml.safe_dump(_merged({**VALUES, **switch}, values)))
        self.wait_ready()
        (agent,) = (pod for pod in self.pods_of("node") if pod["spec"]["nodeName"] == NODE)
        self.agent_address = agent["status"]["podIP"]
        until(lambda: self.offer_millis() is not None, READY_LIMIT_S * self.patience, "an offer")

    def wait_ready(self) -> None:
        """Wait for every workload.

        Raises:
            CommandError: one does not become ready; with what its pods say of themselves.
        """
        for workload in WORKLOADS:
            try:
                self.in_system(
                    "rollout", "status", workload, f"--timeout={patience_s(READY_LIMIT_S * self.patience):.0f}s"
                )
            except CommandError as error:
                said = self.in_system("logs", workload, "--all-containers", "--tail=20")
                raise CommandError(f"{error}\n{self.in_system('describe', 'pods')[-6000:]}\n{said}") from error

    def test(self) -> str:
        """What `helm test` and its pod say.

        Raises:
            CommandError: the installation does not work.
        """
        limit = f"{patience_s(READY_LIMIT_S * self.patience):.0f}s"
        return self.cluster.helm("test", RELEASE, "--namespace", NAMESPACE, "--logs", "--timeout", limit)

    def uninstall(self) -> None:
        """As docs/kubernetes.md says.

        Raises:
            CommandError: the Job that cleans up has failed.
        """
        self.transcript.append("$ helm uninstall sublet -n sublet-system\n")
        self.cluster.helm(
            "uninstall", RELEASE, "--namespace", NAMESPACE, "--timeout", f"{patience_s(READY_LIMIT_S):.0f}s"
        )

    def leave(self) -> None:
        """Delete the namespace behind an uninstall, without waiting: who wants it next does that."""
        self.cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")

    def left(self) -> list[str]:
        """What the cluster has of it, apart from kinds and the namespace; after an uninstall nothing."""
        kinds = "leases,configmaps,secrets,services,serviceaccounts,roles,rolebindings,networkpolicies,jobs"
        inside = self.in_system("get", kinds, "--output", "name").split()
        everywhere = "clusterroles,clusterrolebindings,validatingadmissionpolicies,priorityclasses"
        outside = self._names(everywhere)
        known = self.cluster.kubectl("api-resources").split()
        node = self.cluster.get("node", NODE)
        amounts = node["status"]["allocatable"].keys() | node["status"]["capacity"].keys()
        return [
            *(name for name in inside if name not in OF_EVERY_NAMESPACE),
            *(name for name in outside if "/sublet" in name),
            *(name for kind in ("kcnr", "cnc") if kind in known for name in self._names(kind)),
            *sorted(name for name in amounts if "katalyst" in name),
            *(taint["key"] for taint in node["spec"].get("taints", [])),
        ]

    def _names(self, kinds: str) -> list[str]:
        return self.cluster.kubectl("get", kinds, "--output", "name").split()

    def type(self, *words: str, given: str | None = None) -> str:
        """A command of kubectl that belongs to the transcript, and its answer."""
        said = self.cluster.kubectl(*words, given=given)
        typed = " ".join(f"'{word}'" if " " in word else word for word in words)
        body = "" if given is None else f" <<'EOF'\n{given.rstrip()}\nEOF"
        self.transcript.append(f"$ kubectl {typed}{body}\n{said}")
        return said

    def say(self, line: str) -> None:
        """A line of the story, for the transcript's reader."""
        self.transcript.append(f"\n# {line}\n")

    def in_system(self, *words: str) -> str:
        """What kubectl says of the product's own namespace."""
        return self.cluster.kubectl("--namespace", NAMESPACE, *words)

    def node_command(self, *words: str) -> str:
        """What a command of Sublet says on the node."""
        return self.in_system("exec", "daemonset/sublet-node", "--container", "agent", "--", "sublet", *words)

    def resource(self, node: str = NODE) -> dict[str, Any]:
        """The node's CustomNodeResource; empty: there is none."""
        try:
            return self.cluster.get("kcnr", node)
        except CommandError:
            return {}

    def offer_millis(self) -> int | None:
        """Reclaimed milli-cores that can be asked for; None: none are told."""
        told = self.resource().get("status", {}).get("resourceAllocatable", {}).get(TUTORIAL_RECLAIMED_CPU)
        return None if told is None else parse_units(told)

    def sold_millis(self) -> int:
        """Reclaimed milli-cores that the scheduler may give out on the node."""
        return parse_units(self.cluster.get("node", NODE)["status"]["allocatable"].get(RECLAIMED_CPU, 0))

    def wait_offer(self, low_millis: int, high_millis: int, limit_s: float) -> int:
        """The offer once it is between two bounds.

        Raises:
            TimeoutError: it is not within the limit; names the last one.
        """
        seen: list[int | None] = []

        def within() -> bool:
            seen.append(self.offer_millis())
            return seen[-1] is not None and low_millis <= seen[-1] <= high_millis

        try:
            until(within, limit_s, f"an offer of {low_millis} to {high_millis} millicores")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the last ones: {seen[-5:]}") from error
        found = seen[-1]
        assert found is not None
        return found

    def start(self, *documents: Mapping[str, Any]) -> None:
        """Create pods and wait until they run."""
        self.type("create", "--filename", "-", given="---\n".join(map(yaml.safe_dump, documents)))
        for document in documents:
            self.cluster.wait_ready(document["metadata"]["name"], POD_LIMIT_S * self.patience)

    def end(self, *names: str) -> None:
        """Delete pods and wait until they are gone."""
        self.type("delete", "pod", *names, "--wait", f"--timeout={GONE_LIMIT_S * self.patience:.0f}s")

    @contextmanager
    def load(self, pod: str, *words: str) -> Iterator[None]:
        """`kubectl exec` beside the block; what it has started in the pod ends by itself or with the pod."""
        self.transcript.append(f"$ kubectl exec {pod} -it -- {' '.join(words)}\n")
        with self.cluster.aside("exec", pod, "--", *words) as process:
            try:
                yield
            except Exception as error:
                if (code := process.poll()) is not None:
                    error.add_note(f"the load on {pod} had ended by itself: kubectl exec returned {code}")
                raise
            finally:
                process.kill()

    def pods(self, namespace: str = "default") -> dict[str, str]:
        """Names of the pods that are not on their way out, and their UIDs."""
        found = self.cluster.get("pods", "--namespace", namespace)["items"]
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in found
            if "deletionTimestamp" not in pod["metadata"]
        }

    def evict_lines(self) -> list[str]:
        """What `kubectl get event -A | grep evict` prints of this story."""
        names = defaultdict(list)
        for event in self.cluster.get("events.events.k8s.io", "--all-namespaces")["items"]:
            if "evict" in json.dumps(event) and (event.get("eventTime") or self.began_at) >= self.began_at:
                names[event["metadata"]["namespace"]].append(event["metadata"]["name"])
        lines: list[str] = []
        for namespace, found in names.items():
            words = ("get", "event", "--namespace", namespace, "--no-headers", "--ignore-not-found", *found)
            lines += (f"{namespace}   {line}" for line in self.cluster.kubectl(*words).splitlines())
        return [line for line in lines if "evict" in line]

    def wait_evicted(self, pod: str, scope: str, limit_s: float) -> None:
        """Wait for the Event that says that a pod is gone, and for what.

        Raises:
            TimeoutError: there is none within the limit.
        """
        words = ("EvictSucceeded", f"pod/{pod} ", f"scope: {scope} ")
        until(lambda: any(all(word in line for word in words) for line in self.evict_lines()), limit_s,
              f"EvictSucceeded of {pod} for {scope}")  # fmt: skip

    def pods_of(self, workload: str) -> Sequence[dict[str, Any]]:
        """The pods of a component: `node`, `central`, `bus`, `events`."""
        listed: Sequence[dict[str, Any]] = self.cluster.get(
            "pods", "--namespace", NAMESPACE, "--selector", f"app.kubernetes.io/component={workload}"
        )["items"]
        return listed


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Values with others on top, section by section."""
    both = {key: _merged(base[key], value) for key, value in over.items() if isinstance(base.get(key), dict)}
    return {**base, **over, **both}
