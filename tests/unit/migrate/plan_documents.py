"""A small cluster of each system, as `kubectl get … -o yaml` prints its objects."""

from typing import Any

import yaml

from sublet.migrate.plan.objects import ClusterObject, objects_of

KOORDINATOR = """
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config, namespace: koordinator-system}
data:
  colocation-config: |
    {"enable": true, "cpuReclaimThresholdPercent": 70, "degradeTimeMinutes": 10, "resourceDiffThreshold": 0.2,
     "midCPUThresholdPercent": 40, "midReclaimMode": "static",
     "nodeConfigs": [{"name": "hot", "nodeSelector": {"matchLabels": {"pool": "hot"}},
                      "cpuReclaimThresholdPercent": 50}]}
  resource-threshold-config: |
    {"clusterStrategy": {"enable": true, "cpuSuppressThresholdPercent": 60, "memoryEvictThresholdPercent": 80,
                         "cpuEvictTimeWindowSeconds": 62, "cpuEvictPolicy": "evictByAllocatable",
                         "memoryAllocatableEvictThresholdPercent": 120}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: koordlet, namespace: koordinator-system}
spec:
  template:
    spec:
      nodeSelector: {colocated: "true"}
      containers:
        - name: koordlet
          image: registry.example/koordlet:v1.8
          command: [/koordlet]
          args: ["-feature-gates=GATES", --memory-evict-cool-time-seconds, "10",
                 --prediction-cold-start-duration=1h30m, --v=4]
---
apiVersion: config.koordinator.sh/v1alpha1
kind: ClusterColocationProfile
metadata: {name: batch}
spec: {selector: {matchLabels: {kind: batch}}, qosClass: BE, priorityClassName: koord-batch}
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {pool: hot}
  annotations: {node.koordinator.sh/reservation: "{}"}
---
apiVersion: slo.koordinator.sh/v1alpha1
kind: NodeSLO
metadata: {name: n1}
spec: {resourceUsedThresholdWithBE: {enable: true, cpuSuppressThresholdPercent: 60}}
"""
KATALYST = """
apiVersion: v1
kind: List
items:
  - apiVersion: config.katalyst.kubewharf.io/v1alpha1
    kind: KatalystCustomConfig
    metadata: {name: aqc, namespace: kube-system}
    spec: {targetType: {group: config.katalyst.kubewharf.io, version: v1alpha1, resource: adminqosconfigurations}}
  - apiVersion: config.katalyst.kubewharf.io/v1alpha1
    kind: AdminQoSConfiguration
    metadata: {name: default, namespace: kube-system}
    spec:
      config:
        evictionConfig:
          cpuPressureEvictionConfig: {enableLoadEviction: true, loadUpperBoundRatio: 1.8}
        advisorConfig: {someKnob: 3}
  - apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: katalyst-agent, namespace: katalyst-system}
    spec:
      template:
        spec:
          containers:
            - name: katalyst-agent
              image: registry.example/katalyst-agent:v0.5
              args: [--eviction-load-upper-bound-ratio=2.5, --eviction-enable-rss-overuse, --eviction-burst=5, --v=3]
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: katalyst-scheduler, namespace: katalyst-system}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: katalyst-controller, namespace: katalyst-system}
"""


def documents(text: str) -> list[Any]:
    """What a text says, document by document."""
    return list(yaml.safe_load_all(text))


def koordinator(gates: str = "", **replaced: str) -> list[ClusterObject]:
    """Koordinator's objects, with these feature gates and pieces of text replaced."""
    text = KOORDINATOR.replace("GATES", gates)
    for old, new in replaced.items():
        text = text.replace(old, new)
    return objects_of(documents(text), "here")


def katalyst(old: str = "", new: str = "") -> list[ClusterObject]:
    """Katalyst's objects, with a piece of text replaced."""
    return objects_of(documents(KATALYST.replace(old, new) if old else KATALYST), "here")
