"""Which reclaimed pods keep what kubelet gave them while they start: how far a start is, how many, for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.starting import Holds, PodStart, StartProgress, StartRules, Starts, progress

RULES = StartRules(most=2, each_s=60.0, each_cpu_s=10.0)


@pytest.mark.parametrize(
    ("inside", "staying", "preparing", "expected"),
    [
        pytest.param({}, [None], [], "waiting", id="kubelet has made the pod's group alone"),
        pytest.param({"sandbox": "runtime"}, [None], [], "starting", id="the sandbox is being made"),
        pytest.param({"sandbox": "own"}, [None], [], "waiting", id="the sandbox sleeps"),
        pytest.param({"sandbox": "own", "a": "nothing"}, ["a"], [], "waiting", id="a group without a process"),
        pytest.param({"sandbox": "own", "a": "runtime"}, [None], [], "starting", id="before the container's program"),
        pytest.param({"sandbox": "own", "a": "own"}, [None], [], "started", id="its program runs"),
        pytest.param({"sandbox": "own", "a": "own"}, [None, None], [], "starting", id="the first of two"),
        pytest.param({"sandbox": "own", "a": "own", "b": "own"}, ["a", None], [], "started", id="both"),
        pytest.param({"a": "own"}, ["a"], [], "started", id="a runtime without sandboxes, once the id is known"),
        pytest.param({"a": "own"}, ["a", None], [], "waiting", id="a runtime without sandboxes, one of two"),
        pytest.param({"sandbox": "own", "i": "own"}, [None, None], ["i"], "started", id="an init container works"),
        pytest.param({"sandbox": "own", "i": "nothing"}, [None], ["i"], "waiting", id="behind an init container"),
    ],
)
def test_how_far_the_start_of_a_pod_is(
    inside: dict[str, Holds], staying: list[str | None], preparing: list[str], expected: StartProgress
) -> None:
    assert progress(inside, staying, preparing) == expected


def seen(**pods: tuple[StartProgress, float]) -> dict[str, PodStart]:
    return {uid: PodStart(f"default/{uid}", how, cpu_s) for uid, (how, cpu_s) in pods.items()}


def test_who_waits_is_not_counted_and_of_those_that_start_the_first_by_name_come_first() -> None:
    starts = Starts()
    now = seen(d=("starting", 0), c=("starting", 0), b=("starting", 0), a=("waiting", 0), e=("started", 0))
    assert starts.exempt(now, RULES, 0.0) == {"a", "b", "c"}


def test_who_started_first_is_not_pushed_out_by_a_name() -> None:
    starts = Starts()
    starts.exempt(seen(y=("starting", 0), z=("starting", 0)), RULES, 0.0)
    more = seen(a=("starting", 0), y=("starting", 0), z=("starting", 0))
    assert starts.exempt(more, RULES, 1.0) == {"y", "z"}
    assert starts.exempt(more | seen(y=("started", 1)), RULES, 2.0) == {"a", "z"}


def test_a_pod_that_starts_again_and_again_has_one_budget_of_time() -> None:
    starts, kept = Starts(), []
    for t in range(0, 200, 5):
        how: StartProgress = "starting" if t % 20 < 10 else "started"
        kept.append("a" in starts.exempt(seen(a=(how, 0.0)), RULES, float(t)))
    assert kept[0]
    assert 0 < sum(kept) * 5 <= RULES.each_s
    assert not any(kept[-16:])


def test_a_pod_that_only_waits_keeps_its_whole_budget_of_time() -> None:
    starts, booted_s = Starts(), 5000.0
    for look in range(1000):
        assert starts.exempt(seen(a=("waiting", 0.0)), RULES, booted_s + look)
    begun_s = booted_s + 999
    for spent_s in (0.0, 30.0, RULES.each_s - 0.5):
        assert starts.exempt(seen(a=("starting", 0.0)), RULES, begun_s + spent_s)
    assert not starts.exempt(seen(a=("starting", 0.0)), RULES, begun_s + RULES.each_s)


def test_a_pod_that_works_while_it_claims_to_start_has_one_budget_of_cpu_time() -> None:
    starts = Starts()
    for t in range(9):
        assert starts.exempt(seen(a=("waiting", 1.2 * t)), RULES, t / 10)
    assert not starts.exempt(seen(a=("waiting", 10.8)), RULES, 1.0)
    assert not starts.exempt(seen(a=("starting", 10.8)), RULES, 1000.0), "time alone gives nothing back"


@pytest.mark.parametrize(("used_s", "kept"), [(RULES.each_cpu_s - 0.1, True), (RULES.each_cpu_s, False)])
def test_a_pod_has_its_whole_budget_of_cpu_time_and_no_more(used_s: float, kept: bool) -> None:
    starts = Starts()
    for cpu_s in (700.0, 700.0):
        starts.exempt(seen(a=("waiting", cpu_s)), RULES, 5000.0)
    assert bool(starts.exempt(seen(a=("waiting", 700.0 + used_s)), RULES, 5001.0)) is kept


def test_what_a_pod_used_behind_all_others_is_not_counted() -> None:
    starts = Starts()
    starts.exempt(seen(a=("started", 0.0)), RULES, 0.0)
    assert starts.exempt(seen(a=("starting", 5000.0)), RULES, 9000.0) == {"a"}


def test_a_pod_of_which_no_figure_is_known_starts_behind_all_others() -> None:
    assert not Starts().exempt({"a": PodStart("default/a", "starting", None)}, RULES, 0.0)


def test_nobody_keeps_anything_where_none_may() -> None:
    off = StartRules(most=0, each_s=60.0, each_cpu_s=10.0)
    assert not Starts().exempt(seen(a=("waiting", 0), b=("starting", 0)), off, 0.0)


HOW = st.sampled_from(["waiting", "starting", "started"])
LOOKS = st.lists(st.dictionaries(st.sampled_from("abcdef"), st.tuples(HOW, st.floats(0, 3))), min_size=1, max_size=60)


@given(LOOKS, st.integers(0, 3))
def test_never_more_than_so_many_never_for_longer_never_one_that_runs_and_whatever_the_order(
    looks: list[dict[str, tuple[StartProgress, float]]], most: int
) -> None:
    rules = StartRules(most, each_s=6.0, each_cpu_s=4.0)
    starts, mirrored = Starts(), Starts()
    used: dict[str, float] = {}
    started_s: dict[str, float] = {}
    cpu_s: dict[str, float] = {}
    for t, look in enumerate(looks):
        for gone in used.keys() - look.keys():  # a UID never comes back
            look[gone] = ("started", 0.0)
        cpu_s = {uid: cpu_s.get(uid, 0.0) + more for uid, (_, more) in look.items()}
        now = seen(**{uid: (how, cpu_s[uid]) for uid, (how, _) in look.items()})
        kept = starts.exempt(now, rules, float(t))
        assert kept == mirrored.exempt(dict(reversed(now.items())), rules, float(t))
        assert not {uid for uid in kept if now[uid].progress == "started"}
        assert sum(now[uid].progress == "starting" for uid in kept) <= most
        for uid in kept:
            started_s[uid] = started_s.get(uid, 0.0) + (now[uid].progress == "starting")
            assert started_s[uid] <= rules.each_s + 1, "one look late at most"
            assert used.get(uid, 0.0) < rules.each_cpu_s
        for uid in look:  # what it will have used by the next look counts there
            following = looks[t + 1].get(uid, (None, 0.0))[1] if t + 1 < len(looks) else 0.0
            used[uid] = used.get(uid, 0.0) + (following if uid in kept else 0.0)
