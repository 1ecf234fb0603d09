"""The next step of a node, from what is seen of it."""

from dataclasses import replace

import pytest

from shared.errors import Conflict, SubletError, Unavailable
from sublet.migrate.labels import AGENT_LABEL, BACK, BEGUN, DONE, HERE, LEFT, TAKEOVER
from sublet.migrate.takeover.node_view import NodeDocuments, NodeView, view_of
from sublet.migrate.takeover.origin import ORIGINS
from sublet.migrate.takeover.steps import SETTLE_S, LabelStep, NoStep, Step, WaitStep, back_step, takeover_step

KOORDINATOR, KATALYST = ORIGINS["koordinator"], ORIGINS["katalyst"]
SEEN = NodeView("n1", None, called=False, ready=True, theirs=("ks/koordlet-x",), ours=True, observes=True, well=True,
                suppresses=True)  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (SEEN, {TAKEOVER: BEGUN}),
        (replace(SEEN, label=BEGUN), "the NodeSLO of n1 still switches suppression on"),
        (replace(SEEN, label=BEGUN, suppresses=False), {TAKEOVER: LEFT}),
        (replace(SEEN, label=BEGUN, suppresses=None), {TAKEOVER: LEFT}),
        (replace(SEEN, label=LEFT), "ks/koordlet-x still runs"),
        (replace(SEEN, label=LEFT, theirs=()), {TAKEOVER: DONE}),
        (replace(SEEN, label=DONE, theirs=()), "does not report yet that it enforces"),
        (replace(SEEN, label=DONE, theirs=(), observes=None), "does not report yet that it enforces"),
        (replace(SEEN, label=DONE, theirs=(), observes=False, well=False, why="x"), "is not well: x"),
        (replace(SEEN, label=DONE, theirs=(), observes=False, ready=False), "is not Ready"),
        (replace(SEEN, label=DONE, theirs=(), observes=False), None),
        (replace(SEEN, label=DONE, observes=False), "ks/koordlet-x runs there again, and both write the same"),
        (replace(SEEN, label=BACK, theirs=()), {TAKEOVER: DONE}),
        (replace(SEEN, label=BACK), "ks/koordlet-x still runs"),
    ],
)
def test_a_node_is_taken_over_step_by_step(seen: NodeView, step: object) -> None:
    assert said(takeover_step(seen, KOORDINATOR)) == step or str(step) in str(said(takeover_step(seen, KOORDINATOR)))


def said(step: Step) -> object:
    match step:
        case LabelStep(labels=labels):
            return dict(labels)
        case WaitStep(what=what):
            return what
        case NoStep():
            return None


def test_koordlet_has_time_to_give_back_before_it_leaves() -> None:
    step = takeover_step(replace(SEEN, label=BEGUN, suppresses=False), KOORDINATOR)
    assert isinstance(step, LabelStep)
    assert step.settle_s == SETTLE_S


@pytest.mark.parametrize(
    ("seen", "error", "words"),
    [
        (replace(SEEN, ready=False), Unavailable, "node n1 is not Ready: see kubectl describe node n1"),
        (replace(SEEN, observes=None), Unavailable, "no agent of Sublet reports there; install it first"),
        (replace(SEEN, observes=False), Conflict, "Sublet enforces there while ks/koordlet-x runs, and both write"),
        (replace(SEEN, well=False, why="AgentReady: gone"), Unavailable, "not well: AgentReady: gone; see kubectl get"),
        (replace(SEEN, label="mine"), Conflict, "its label sublet.io/takeover is 'mine', want begun, left, done, back"),
    ],
)
def test_a_node_that_does_not_fit_is_refused(seen: NodeView, error: type[SubletError], words: str) -> None:
    with pytest.raises(error, match=words):
        takeover_step(seen, KOORDINATOR)


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (SEEN, None),
        (replace(SEEN, label=BEGUN), {TAKEOVER: BACK}),
        (replace(SEEN, label=LEFT), {TAKEOVER: BACK}),
        (replace(SEEN, label=DONE, observes=False), {TAKEOVER: BACK}),
        (replace(SEEN, label=BACK, observes=False), "Sublet on n1 does not report yet that it observes"),
        (replace(SEEN, label=BACK, observes=None), "Sublet on n1 does not report yet that it observes"),
        (replace(SEEN, label=BACK, observes=True), {TAKEOVER: None, AGENT_LABEL: None}),
        (replace(SEEN, label=BACK, observes=None, ours=False), {TAKEOVER: None, AGENT_LABEL: None}),
    ],
)
def test_a_node_is_given_back_step_by_step(seen: NodeView, step: object) -> None:
    assert said(back_step(seen, KOORDINATOR)) == step


def test_a_node_on_which_both_enforce_is_not_called_the_others() -> None:
    with pytest.raises(Conflict, match=r"node n1: Sublet enforces there while ks/koordlet-x runs.*--set mode=observe"):
        back_step(replace(SEEN, observes=False), KOORDINATOR)
    assert said(back_step(replace(SEEN, observes=False), KATALYST)) is None  # what an agent that has gone said last
    assert said(back_step(replace(SEEN, observes=False, theirs=()), KOORDINATOR)) is None


def test_beside_katalyst_our_agent_comes_once_the_other_has_gone() -> None:
    seen = replace(SEEN, ours=False, observes=None, well=False)
    assert said(takeover_step(seen, KATALYST)) == {TAKEOVER: BEGUN}
    assert said(takeover_step(replace(seen, label=LEFT), KATALYST)) == "ks/koordlet-x still runs"
    assert said(takeover_step(replace(seen, label=LEFT, theirs=()), KATALYST)) == {TAKEOVER: DONE, AGENT_LABEL: HERE}


def condition(name: str, status: str = "True", message: str = "") -> dict[str, str]:
    return {"type": name, "status": status, "message": message}


WELL = [condition(name) for name in ("AgentReady", "ServicesReady", "AllocationFresh", "AllocationApplied")]


@pytest.mark.parametrize(
    ("conditions", "observes", "well"),
    [
        (WELL, False, True),
        ([*WELL[:3], condition("AllocationApplied", "False"), condition("Observing")], True, True),
        ([*WELL[:3], condition("AllocationApplied", "False", "partial")], False, False),
        (WELL[1:], False, False),
        ([condition("AgentReady", "False", "gone"), *WELL[1:]], False, False),
        ([condition("AgentReady")], None, False),
        ([], None, False),
    ],
)
def test_what_a_node_object_says_of_our_agent(
    conditions: list[dict[str, str]], observes: bool | None, well: bool
) -> None:
    seen = view_of("n1", NodeDocuments({}, (), {"status": {"conditions": conditions}}), "koordlet")
    assert (seen.observes, seen.well) == (observes, well)
    assert bool(seen.why) is not well


def test_agents_are_known_by_what_runs_in_their_pods() -> None:
    def pod(name: str, owner: str, image: str, **labels: str) -> dict[str, object]:
        meta = {"name": name, "namespace": "ks", "labels": labels, "ownerReferences": [{"kind": owner, "name": "x"}]}
        return {"metadata": meta, "spec": {"containers": [{"name": "main", "image": f"registry.example/{image}"}]}}

    own = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": "node"}
    pods = [
        pod("a", "DaemonSet", "koordlet:v1"),
        pod("b", "ReplicaSet", "koordlet:v1"),
        pod("c", "DaemonSet", "koord-manager:v1"),
    ]
    seen = view_of("n1", NodeDocuments({}, pods, None), "koordlet")
    assert (seen.theirs, seen.ours) == (("ks/a",), False)
    assert view_of("n1", NodeDocuments({}, [pod("d", "DaemonSet", "sublet:1", **own)], None), "koordlet").ours


@pytest.mark.parametrize(
    "odd", [{}, {"metadata": 3}, {"metadata": {"labels": []}, "status": {"conditions": [None, 3]}}]
)
def test_documents_of_any_shape_are_seen(odd: dict[str, object]) -> None:
    seen = view_of("n1", NodeDocuments(odd, (odd,), odd, odd), "koordlet")
    assert (seen.ready, seen.well, seen.theirs, seen.suppresses) == (False, False, (), False)
