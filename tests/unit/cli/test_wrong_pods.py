"""Wrong pods: names, amounts, documents and files of `run`, `apply`, `get`, `delete` and `logs`; nothing is started."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from wrong_inputs import Row, application, machine, refused, row

REST = "spec: {containers: [{name: m, command: [x]}]}"
HEAD = "apiVersion: v1, kind: Pod, metadata: {name: a}"


def pod(container: str = "", spec: str = "", metadata: str = "") -> str:
    """A pod with something wrong in it."""
    inner = f"name: m, command: [x]{container and ', ' + container}"
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: a{metadata and ', ' + metadata}}}, "
        f"spec: {{containers: [{{{inner}}}]{spec and ', ' + spec}}}}}"
    )


def amounts(requests: str, limits: str = "") -> str:
    return pod(f"resources: {{requests: {{{requests}}}, limits: {{{limits}}}}}")


NAME = "want 1 to 253 lower-case letters"
RUN = [
    row("run", 2, "no command: say what to run|sublet run --help"),
    row("run --", 2, "no command: say what to run"),
    row("run --detach", 2, "no command: say what to run"),
    row("run -- ''", 125, "no command"),
    row("run --name ../x -- true", 125, f"'../x': {NAME}"),
    row("run --name X -- true", 125, f"'X': {NAME}"),
    row("run --name a..b -- true", 125, f"'a..b': {NAME}"),
    row("run --name=-a -- true", 125, f"'-a': {NAME}"),
    row("run --name a_b -- true", 125, f"'a_b': {NAME}"),
    row("run --name 'a b' -- true", 125, f"'a b': {NAME}"),
    row("run --name ünï -- true", 125, f"'ünï': {NAME}"),
    row(f"run --name {'a' * 64} -- true", 125, NAME),
    row("run --name '\x1b[2J' -- true", 125, NAME),
    row("run -n a/b -- true", 125, "'a/b': want 1 to 63 lower-case letters"),
    row("run -n '' -- true", 125, "'': want 1 to 63 lower-case letters"),
    row("run -n a.b -- true", 125, "'a.b': want 1 to 63"),
    row("run --cpu two -- true", 125, "quantity 'two': want a number with an optional suffix"),
    row("run --cpu 1core -- true", 125, "quantity '1core'"),
    row("run --cpu nan -- true", 125, "quantity 'nan'"),
    row("run --cpu inf -- true", 125, "quantity 'inf'"),
    row("run --cpu 1,5 -- true", 125, "quantity '1,5'"),
    row("run --cpu 0x10 -- true", 125, "quantity '0x10'"),
    row("run --cpu '1 m' -- true", 125, "quantity '1 m'"),
    row("run --cpu \u0661 -- true", 125, "want a number with an optional suffix"),
    row("run --cpu 1e999 -- true", 125, "quantity '1e999'"),
    row("run --cpu=-1 -- true", 125, "out of bounds: 0 to"),
    row("run --cpu 1e30 -- true", 125, "out of bounds: 0 to"),
    row("run --cpu-limit x --qos shared -- true", 125, "quantity 'x'"),
    row("run --memory 64MB -- true", 125, "quantity '64MB'"),
    row("run --memory 1Q -- true", 125, "quantity '1Q'"),
    row("run --memory lots -- true", 125, "quantity 'lots'"),
    row("run --memory=-1 -- true", 125, "out of bounds: 0 to"),
    row("run --memory 1e30 -- true", 125, "out of bounds: 0 to"),
    row("run --memory 9Ei -- true", 125, "out of bounds: 0 to"),
    row("run --cpu 0 -- true", 125, "--cpu 0: want more than 0, or leave it out"),
    row("run --cpu 0m --qos shared -- true", 125, "--cpu 0m: want more than 0"),
    row("run --memory 0 -- true", 125, "--memory 0: want more than 0"),
    row("run --memory 0Gi -- true", 125, "--memory 0Gi: want more than 0"),
    row("run --name '' -- true", 125, f"metadata.name: '': {NAME}"),
    row("run --name= -- true", 125, f"'': {NAME}"),
    row("run --qos shared --cpu 2 --cpu-limit 1 -- true", 125, "request|above its limit|raise the limit"),
    row("run --qos shared --memory 2Gi --memory-limit 1Gi -- true", 125, "above its limit"),
    row("run --qos batch -- true", 2, "--qos 'batch': want reclaimed, shared, dedicated"),
    row("run --qos '' -- true", 2, "--qos '': want reclaimed"),
    row("run --qos Shared -- true", 2, "did you mean 'shared'?"),
    row("run --qos shared --numa-exclusive -- true", 125, "--numa-exclusive is for dedicated pods|leave it out"),
    row("run --pool flink -- true", 125, "--pool is for shared pods|leave it out"),
    row("run --env A -- true", 125, "--env 'A': want NAME=VALUE"),
    row("run --env =x -- true", 125, "--env '=x': want NAME=VALUE"),
    row("run --env '' -- true", 125, "--env '': want NAME=VALUE"),
    row("run --grace-period x -- true", 2, "--grace-period 'x': want a whole number"),
    row("run --grace-period 1.5 -- true", 2, "--grace-period '1.5': want a whole number"),
    row("run --grace-period=-1 -- true", 125, "terminationGracePeriodSeconds: -1: want a whole number from 0"),
    row("run --grace-period 99999999999 -- true", 125, "terminationGracePeriodSeconds: 99999999999: want"),
    row("run --user nobodyatall -- true", 125, "--user 'nobodyatall': this host has no user"),
    row("run --user 4294967295 -- true", 125, "--user '4294967295'"),
    row("run --user=-1 -- true", 125, "--user '-1'"),
    row("run --user 1:2:3 -- true", 125, "--user '1:2:3'"),
    row("run --memroy 1Gi -- true", 2, "no option '--memroy' (did you mean '--memory'?)"),
]
APPLY = [
    row("apply", 2, "--filename is missing|sublet apply --help"),
    row("apply -f", 2, "-f wants a value"),
    row("apply -f ''", 2, "--filename ''"),
    row("apply -f nope.yaml", 2, "nope.yaml: no such file or directory"),
    row("apply -f folder", 2, "--filename folder: 0 files that end with .json, .yaml, .yml|-R"),
    row("apply -f folder -R", 2, "--filename folder: 0 files"),
    row("apply -f binary.yaml", 2, "binary.yaml"),
    row("apply -f empty.yaml", 2, "empty.yaml: no document found: want at least one with kind: Pod"),
    row("apply -f broken.yaml", 2, "broken.yaml|not YAML"),
    row("apply -f list.yaml", 2, "list.yaml, line 1: document: want a mapping"),
    row("apply -f text.yaml", 2, "text.yaml, line 1: document: want a mapping"),
    row("delete -f text.yaml", 2, "text.yaml, line 1: document: want a mapping"),
    row("delete -f empty.yaml", 2, "empty.yaml: no document found"),
    row("apply -f -", 2, "-, line 2: kind 'Job'", "---\nkind: Job\n"),
    row(
        "apply -f -",
        2,
        "-, line 1, item 2: kind 'Job'",
        "kind: List\nitems: [{kind: Pod, metadata: {name: a}, "
        "spec: {containers: [{name: c, command: [x]}]}}, {kind: Job}]\n",
    ),
    row("apply -f http://example.org/x.yaml", 2, "--filename http://example.org/x.yaml: want a file or folder"),
    row("apply -f nope.yaml -f empty.yaml", 2, "nope.yaml: no such file"),
    row("apply -f - extra", 2, "'extra' is one word too many"),
    row("apply -f -", 2, "no document found"),
    row("apply -f -", 2, "want a mapping", "5"),
    row("apply -f -", 2, "want a mapping", "- a\n- b\n"),
    row("apply -f -", 2, "not YAML", "a: [\n"),
    row("apply -f -", 2, "not YAML", "a: b: c\n"),
    row("apply -f -", 2, "not YAML", "{a: }}"),
    row("apply -f -", 2, "not YAML", "!!python/object:os.system {}"),
    row("apply -f -", 2, "nested too deep", "&a [*a]"),
    row("apply -f -", 2, "nested too deep", "[" * 50 + "]" * 50),
    row("apply -f -", 2, "kind 'Deployment'|only kind Pod of v1", "kind: Deployment"),
    row("apply -f -", 2, "kind 'pod'", "kind: pod"),
    row("apply -f -", 2, "'v2'|only kind Pod of v1", "{apiVersion: v2, kind: Pod}"),
    row("apply -f -", 2, "metadata.name: is missing", "{apiVersion: v1, kind: Pod}"),
    row("apply -f -", 2, "generateName", "{apiVersion: v1, kind: Pod, metadata: {generateName: x-}}"),
    row("apply -f -", 2, f"metadata.name: 5: {NAME}", f"{{apiVersion: v1, kind: Pod, metadata: {{name: 5}}, {REST}}}"),
    row(
        "apply -f -", 2, f"metadata.name: '': {NAME}", f"{{apiVersion: v1, kind: Pod, metadata: {{name: ''}}, {REST}}}"
    ),
    row(
        "apply -f -",
        2,
        f"metadata.name: True: {NAME}",
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: on}}, {REST}}}",
    ),
    row("apply -f -", 2, "metadata: want a mapping", f"{{apiVersion: v1, kind: Pod, metadata: [a], {REST}}}"),
    row("apply -f -", 2, "metadata.namespace: 'A'", pod(metadata="namespace: A")),
    row("apply -f -", 2, "labels.x: 5: want a string; put a number in quotes", pod(metadata="labels: {x: 5}")),
    row("apply -f -", 2, "labels: want a mapping", pod(metadata="labels: [x]")),
    row("apply -f -", 2, "annotations.x: True: want a string", pod(metadata="annotations: {x: yes}")),
    row(
        "apply -f -",
        2,
        "'golden' names no QoS class: want shared_cores",
        pod(metadata="annotations: {katalyst.kubewharf.io/qos_level: golden}"),
    ),
    row("apply -f -", 2, "spec: want a mapping", f"{{{HEAD}, spec: 5}}"),
    row("apply -f -", 2, "containers: 0 given: want 1 to 64", f"{{{HEAD}}}"),
    row("apply -f -", 2, "containers: 0 given: want 1 to 64", f"{{{HEAD}, spec: {{containers: []}}}}"),
    row("apply -f -", 2, "containers: want a list", f"{{{HEAD}, spec: {{containers: {{name: m}}}}}}"),
    row("apply -f -", 2, "containers[0]", f"{{{HEAD}, spec: {{containers: [5]}}}}"),
    row("apply -f -", 2, "containers[0].name", f"{{{HEAD}, spec: {{containers: [{{command: [x]}}]}}}}"),
    row("apply -f -", 2, "name a program with command", f"{{{HEAD}, spec: {{containers: [{{name: m}}]}}}}"),
    row(
        "apply -f -", 2, "command: want a list, got str", f"{{{HEAD}, spec: {{containers: [{{name: m, command: x}}]}}}}"
    ),
    row(
        "apply -f -",
        2,
        "command[0]: 5: want a string",
        f"{{{HEAD}, spec: {{containers: [{{name: m, command: [5]}}]}}}}",
    ),
    row(
        "apply -f -",
        2,
        "container m stands twice",
        f"{{{HEAD}, spec: {{containers: [{{name: m, command: [x]}}, {{name: m, command: [x]}}]}}}}",
    ),
    row("apply -f -", 2, "stands twice in this file", pod() + "\n---\n" + pod()),
    row("apply -f -", 2, "priority: 'high': want a whole number", pod(spec="priority: high")),
    row("apply -f -", 2, "priority: 99999999999: want a whole number", pod(spec="priority: 99999999999")),
    row("apply -f -", 2, "priority: 1.5: want a whole number", pod(spec="priority: 1.5")),
    row(
        "apply -f -",
        2,
        "terminationGracePeriodSeconds: -5: want a whole number from 0",
        pod(spec="terminationGracePeriodSeconds: -5"),
    ),
    row("apply -f -", 2, "terminationGracePeriodSeconds: '30s'", pod(spec="terminationGracePeriodSeconds: 30s")),
    row("apply -f -", 2, "workingDir 'rel': want an absolute path", pod("workingDir: rel")),
    row("apply -f -", 2, "env: want a list", pod("env: {A: b}")),
    row("apply -f -", 2, "env A: 5: want a string", pod("env: [{name: A, value: 5}]")),
    row("apply -f -", 2, "want a name without '='", pod("env: [{name: 'A=B', value: x}]")),
    row("apply -f -", 2, "valueFrom needs a cluster", pod("env: [{name: A, valueFrom: {}}]")),
    row("apply -f -", 2, "quantity 'two'", amounts("cpu: two")),
    row("apply -f -", 2, "out of bounds", amounts("cpu: -1")),
    row("apply -f -", 2, "quantity '64MB'", amounts("memory: 64MB")),
    row("apply -f -", 2, "resources: want a mapping", pod("resources: 5")),
    row("apply -f -", 2, "cpu request 2000 is above its limit 1000; raise the limit", amounts("cpu: 2", "cpu: 1")),
    row("apply -f - --user nobodyatall", 2, "--user 'nobodyatall'", pod()),
]
LOOK = [
    row("get", 2, "is missing|sublet get --help"),
    row("get jobs", 2, "get 'jobs': want pods, pod/NAME, cnr or node"),
    row("get deployment/web", 2, "get 'deployment/web': want pods"),
    row("get ''", 2, "get '': want pods"),
    row("get PODS", 2, "get 'PODS': want pods"),
    row("get pods -o wid", 2, "--output 'wid': want table, wide, name|did you mean 'wide'?"),
    row("get pods -o ''", 2, "--output '': want table"),
    row("get pods -o jsonpath", 2, "--output 'jsonpath': want table"),
    row("get pods -o jsonpath=", 2, "jsonpath '': want {.path}"),
    row("get pods -o jsonpath={.x", 2, "jsonpath '{.x': want {.path}"),
    row("get pods -o 'jsonpath={.items[?(@.a)]}'", 2, "filters and slices are not known here"),
    row("get pods -o 'jsonpath={range .items[*]}'", 2, "{range} without {end}"),
    row("get pods --outpu json", 2, "did you mean '--output'?"),
    row("get pod/web", 1, "pod default/web not found"),
    row("get pods web", 1, "pod default/web not found"),
    row("get pods web -n team", 1, "pod team/web not found"),
    row("get pod/", 2, "'pod/': want the name of a pod"),
    row("get pod ''", 2, "'': want the name of a pod"),
    row("get pod pod/web", 2, "name the kind once"),
    row("get pod/web node/x", 2, "'node/x': only pods are meant here"),
    row("get pods -n A", 2, "--namespace: 'A': want 1 to 63"),
    row("get pods -n a/b", 2, "--namespace: 'a/b'"),
    row("get pods -l 'app in web'", 2, "--selector: 'app in web': want key=value"),
    row("get pods -l =", 2, "--selector: '=': want key=value"),
    row("get pods web -l app=web", 2, "names and --selector: want one of them"),
    row("get pods -w -o json", 2, "--watch prints lines: want -o table or wide, not json"),
    row("get node -w", 2, "--watch, --selector and namespaces are for pods"),
    row("get cnr -l app=x", 2, "--watch, --selector and namespaces are for pods"),
    row("get node other", 1, "node 'other' not found; this host is 'node1'"),
    row("get cnr", 3, "is Sublet up?"),
    row("get cnr --cluster", 3, "no cluster is known"),
    row("get cnr --cluster --kubeconfig nope", 2, "--kubeconfig nope: no such file"),
    row("get cnr --cluster --kubeconfig binary.yaml", 3, "no way to the API server by binary.yaml: it is no"),
    row("get cnr --cluster --kubeconfig text.yaml", 3, "no way to the API server by text.yaml"),
    row("get cnr --cluster --kubeconfig empty.yaml", 3, "no way to the API server by empty.yaml"),
    row("get cnr --cluster --kubeconfig list.yaml", 3, "no way to the API server by list.yaml"),
    row("get pods --cluster --kubeconfig text.yaml", 2, "want node or cnr"),
    row("describe", 2, "is missing"),
    row("describe nope", 1, "pod default/nope not found"),
    row("describe node other", 1, "node 'other' not found"),
    row("describe pods -l '!'", 2, "--selector: '!'"),
    row("logs", 2, "is missing"),
    row("logs nope", 1, "pod default/nope not found"),
    row("logs ''", 2, "logs: '': want the name of a pod, as pod/web"),
    row("logs pod/", 2, "logs: 'pod/': want the name of a pod"),
    row("logs job", 1, "pod default/job not found"),
    row("logs node/x", 1, "pod node/x not found"),
    row("logs a b", 2, "'b' is one word too many"),
    row("logs x --tail=-5", 2, "--tail '-5': want a whole number of 0 or more"),
    row("logs x --tail all", 2, "--tail 'all': want a whole number"),
    row("logs x --since 5x", 2, "--since: '5x' is no time: want 30m, 2h, 7d"),
    row("logs x --since=-5m", 2, "--since: '-5m' is no time"),
    row("logs x --since-time yesterday", 2, "--since-time: 'yesterday' is no time"),
    row("logs x --since 5m --since-time 2026-03-09", 2, "--since and --since-time: both say where to begin"),
    row("logs x --previus", 2, "did you mean '--previous'?"),
    row("logs x --previous", 1, "pod default/x not found"),
    row("delete", 2, "want one of pod/NAME, -f FILE, -l SELECTOR, or --all"),
    row("delete nope", 1, "pod default/nope not found"),
    row("delete pods", 2, "want one of pod/NAME"),
    row("delete ''", 2, "'': want the name of a pod"),
    row("delete nope --all", 2, "2 of them are given"),
    row("delete deployment/web", 2, "'deployment/web': only pods are meant here"),
    row("delete x --grace-period=-1", 2, "--grace-period '-1': want a number from 0"),
    row("delete x --grace-period abc", 2, "--grace-period 'abc': want a number from 0"),
    row("delete x --grace-period 1e9", 2, "--grace-period '1e9': want a number from 0"),
    row("delete -f nope.yaml", 2, "nope.yaml: no such file"),
    row("delete -f empty.yaml", 2, "no document found"),
    row("delete -f -", 2, "kind 'Service': only pods are meant here", "kind: Service"),
    row("delete -l 'a b'", 2, "--selector: 'a b'"),
]  # fmt: skip


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return application()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with machine(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("wrong", RUN + APPLY + LOOK, ids=str)
def test_a_wrong_pod_is_refused_in_words_and_nothing_is_started(app: typer.Typer, folder: Path, wrong: Row) -> None:
    refused(app, folder, wrong)
