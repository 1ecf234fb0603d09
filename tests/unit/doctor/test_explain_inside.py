"""`kubectl sublet explain` asks in the pods of Sublet: which pods, what it makes of their answers, and of none."""

import json
import sys
from pathlib import Path

import pytest

from shared.errors import Refused, Unavailable
from sublet.cluster.inside import MOST_BYTES, Inside, explain

KUBECTL = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
with open({log!r}, "a") as log: log.write(json.dumps(words) + "\\n")
answers = json.loads(pathlib.Path({answers!r}).read_text())
for sign, (code, text, complaint) in answers.items():
    if sign in words:
        print(text, end="")
        print(complaint, end="", file=sys.stderr)
        sys.exit(code)
sys.exit(1)
"""
NODE, AGENTS, AGENT, CENTRAL = "jsonpath={.spec.nodeName}", "name", "pod/agent-x", "deployment/sublet-central"


class Kubectl:
    """A kubectl on the path that answers as it is told, by a word of the command."""

    def __init__(self, folder: Path) -> None:
        self._log, self._answers = folder / "log", folder / "answers"
        program = folder / "kubectl"
        program.write_text(KUBECTL.format(python=sys.executable, log=str(self._log), answers=str(self._answers)))
        program.chmod(0o755)
        self.told({})

    def told(self, answers: dict[str, tuple[int, str, str]]) -> None:
        self._answers.write_text(json.dumps(answers))

    @property
    def asked(self) -> list[list[str]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    monkeypatch.setenv("PATH", str(tmp_path))
    return Kubectl(tmp_path)


def test_a_pod_is_asked_about_on_its_node_and_in_central(kubectl: Kubectl) -> None:
    kubectl.told({NODE: (0, "n1", ""), AGENTS: (0, f"{AGENT}\n", ""), AGENT: (0, "runs on 3\n", "no decisions here"),
                  CENTRAL: (0, "placed\nfor room\n", "")})  # fmt: skip
    lines, _ = explain(Inside("system"), "pod/encode", "shop", "encode", wide=False)
    assert lines == ["runs on 3", "", "placed", "for room"]
    in_agent, in_central = kubectl.asked[2:]
    assert in_agent[:6] == ["--namespace", "system", "exec", AGENT, "--container", "agent"]
    assert in_agent[-6:] == ["explain", "pod/encode", "--namespace", "shop", "--output", "table"]
    assert in_central[3] == CENTRAL
    assert "spec.nodeName=n1" in kubectl.asked[1]


def test_documents_are_one(kubectl: Kubectl) -> None:
    kubectl.told({NODE: (0, "n1", ""), AGENTS: (0, AGENT, ""), AGENT: (0, '{"name": "encode", "pool": "share"}', ""),
                  CENTRAL: (0, '{"name": "encode", "decisions": [1]}', "")})  # fmt: skip
    _, document = explain(Inside("system"), "encode", "shop", "encode", wide=None)
    assert document == {"name": "encode", "pool": "share", "decisions": [1]}


def test_other_objects_and_pods_without_a_node_are_centrals(kubectl: Kubectl) -> None:
    kubectl.told({NODE: (0, "", ""), CENTRAL: (0, "it waits", "")})
    assert explain(Inside("system"), "pod/late", "shop", "late", wide=True)[0] == ["it waits"]
    assert explain(Inside("system"), "node/n1", "default", None, wide=True)[0] == ["it waits"]
    assert [words[2] for words in kubectl.asked if "exec" in words] == ["exec", "exec"]


def test_a_kubeconfig_is_handed_on(kubectl: Kubectl) -> None:
    kubectl.told({CENTRAL: (0, "it waits", "")})
    explain(Inside("system", Path("some.yaml")), "node/n1", "default", None, wide=True)
    assert kubectl.asked[0][:2] == ["--kubeconfig", "some.yaml"]


def test_what_nobody_knows_is_refused_with_what_they_said(kubectl: Kubectl) -> None:
    kubectl.told({CENTRAL: (1, "", "sublet: nothing was decided about node n9")})
    with pytest.raises(Refused, match=r"node/n9: sublet: nothing was decided"):
        explain(Inside("system"), "node/n9", "default", None, wide=False)


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"a": ' * 5000, "x" * (MOST_BYTES + 1)])
def test_an_answer_that_is_no_document_is_refused(kubectl: Kubectl, text: str) -> None:
    kubectl.told({CENTRAL: (0, text, "")})
    with pytest.raises(Refused, match="the answer of a pod"):
        explain(Inside("system"), "node/n1", "default", None, wide=None)


def test_without_kubectl_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="kubectl is not on the path"):
        explain(Inside("system"), "node/n1", "default", None, wide=True)
