"""Queries Sublet's pods through `kubectl exec`, and therefore with the user's rights.

A node's decisions never leave the node, and the cluster's decisions are on the bus, for which a user has no login.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.core.text.json_text import read_json_object
from shared.errors import Refused, Unavailable
from sublet.exit_codes import NO_SUCH_OBJECT, OK

CENTRAL = "deployment/sublet-central"
AGENTS = "app.kubernetes.io/name=sublet,app.kubernetes.io/component=node"
ANSWER_LIMIT_S, LOOK_LIMIT_S = 60.0, 30.0
MOST_BYTES = 4 << 20
WORDS_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said that ran in the cluster."""

    code: int
    text: str
    complaint: str

    @property
    def why(self) -> str:
        """The end of what it complained of: that is where the reason stands."""
        return self.complaint.strip()[-WORDS_SHOWN:] or f"ended with {self.code}"


@dataclass(frozen=True, slots=True)
class Inside:
    """The pods of an installation."""

    system: str
    """Its namespace."""
    kubeconfig: Path | None = None

    def central(self, *words: str) -> Said:
        """What central says to this command of Sublet.

        Raises:
            Unavailable: there is no kubectl here, or no answer in time.
        """
        return self._exec(CENTRAL, words)

    def agent_beside(self, namespace: str, pod: str, *words: str) -> Said | None:
        """What the agent of the node says on which a pod is; None: the pod is on none, or there is no such pod.

        Raises:
            Unavailable: as `central`.
        """
        node = self._look("--namespace", namespace, "get", "pod", pod, "--output", "jsonpath={.spec.nodeName}")
        if not node:
            return None
        on_it = ("--selector", AGENTS, "--field-selector", f"spec.nodeName={node}", "--output", "name")
        agents = self._look("--namespace", self.system, "get", "pods", *on_it).split()
        return self._exec(agents[0], words, "--container", "agent") if agents else None

    def _look(self, *words: str) -> str:
        found = self._run(words, LOOK_LIMIT_S)
        return found.text.strip() if found.code == OK else ""

    def _exec(self, pod: str, words: Sequence[str], *where: str) -> Said:
        command = ("--namespace", self.system, "exec", pod, *where, "--", "python", "-m", "sublet", *words)
        return self._run(command, ANSWER_LIMIT_S)

    def _run(self, words: Sequence[str], limit_s: float) -> Said:
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            raise Unavailable("kubectl is not on the path: what Sublet's pods know is asked by `kubectl exec`")
        way = [] if self.kubeconfig is None else ["--kubeconfig", str(self.kubeconfig)]
        try:
            done = subprocess.run([kubectl, *way, *words], capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"kubectl {' '.join(words[:4])}: no answer within {limit_s:g} s") from error
        text, complaint = (part[:MOST_BYTES].decode(errors="backslashreplace") for part in (done.stdout, done.stderr))
        return Said(done.returncode, text, complaint)


def merged(said: Sequence[Said]) -> dict[str, Any]:
    """One document of what each printed as JSON; of a key that several have, the later one's.

    Raises:
        Refused: one of them is no JSON object.
    """
    parts = [read_json_object(one.text, what="the answer of a pod", max_bytes=MOST_BYTES) for one in said]
    both: dict[str, Any] = {}
    for part in parts:
        both |= part
    return both


def explain(
    where: Inside, what: str, namespace: str, pod: str | None, *, wide: bool | None
) -> tuple[list[str], dict[str, Any]]:
    """The lines of an explanation, or its document where `wide` is None: of the pod's node, then of the cluster.

    Raises:
        Unavailable: nobody could be asked.
        Refused: nobody knows anything of it; with what they said instead.
    """
    output = "json" if wide is None else "wide" if wide else "table"
    words = ("explain", what, "--namespace", namespace, "--output", output)
    on_node = None if pod is None else where.agent_beside(namespace, pod, *words)
    asked = [one for one in (on_node, where.central(*words)) if one is not None]
    known = [one for one in asked if one.code == OK]
    if not known:
        raise Refused(f"{what}: {'; '.join(one.why for one in asked)}", reason=NO_SUCH_OBJECT)
    if wide is None:
        return [], merged(known)
    return [line for one in known for line in (*one.text.rstrip("\n").split("\n"), "")][:-1], {}
