"""What one disk is told: which throttling, which lines of io.cost, and what of the kernel's text counts as in force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.devices.disk_lines import (
    NO_DISK_RULES,
    CostModel,
    CostQos,
    Disk,
    DiskClassRules,
    DiskLines,
    DiskRules,
    disk_kind,
    disk_lines,
    in_force,
    line_before,
    model_text,
    qos_text,
    read_lines,
    wanted_wbt,
)

QOS = CostQos(rpct=95.0, rlat_us=5000, wpct=90.5, wlat_us=7000, min=50.0, max=150.0)
MODEL = CostModel("user", 6, 5, 4, 3, 2, 1)
NUMBER = "8:0"


@pytest.mark.parametrize(
    ("name", "rotates", "kind"),
    [
        ("sda", True, "hdd"),
        ("sdab", False, "ssd"),
        ("sda", None, "other"),
        ("nvme0n1", False, "nvme"),
        ("nvme0n1", None, "nvme"),
        ("vda", True, "virtio"),
        ("xvda", False, "ssd"),
        ("loop0", False, "other"),
        ("dm-0", True, "other"),
        ("zram0", False, "other"),
        ("sda1", True, "other"),
        ("", True, "other"),
    ],
)
def test_the_class_of_a_disk(name: str, rotates: bool | None, kind: str) -> None:
    assert disk_kind(name, rotates=rotates) == kind


def test_nothing_is_written_where_nothing_is_switched_on() -> None:
    assert disk_lines(Disk(NUMBER, "hdd", 5), NO_DISK_RULES, cgroup_v2=True) == DiskLines()


@pytest.mark.parametrize(
    ("kind", "said", "now", "writes"),
    [
        ("hdd", None, None, 75_000),
        ("virtio", None, 75_000, None),
        ("ssd", None, 75_000, 2_000),
        ("nvme", 0, 2_000, 0),
        ("nvme", 0, 0, None),
        ("hdd", -1, 0, None),
        ("other", None, 0, None),
        ("tape", 7, 0, 7),
    ],
)
def test_throttling_is_the_classes_and_written_where_it_is_another(
    kind: str, said: int | None, now: int | None, writes: int | None
) -> None:
    rules = DiskRules(wbt=True, classes={kind: DiskClassRules(said)})
    assert disk_lines(Disk(NUMBER, kind, now), rules, cgroup_v2=False) == DiskLines(writes)


def test_io_cost_waits_until_throttling_is_known_to_be_off() -> None:
    on = DiskRules(cost=True, classes={"hdd": DiskClassRules(0, QOS, MODEL)})
    lines = DiskLines(None, qos_text(NUMBER, QOS), model_text(NUMBER, MODEL))
    assert disk_lines(Disk(NUMBER, "hdd", 0), on, cgroup_v2=True) == lines
    for now in (1, 75_000, None):
        assert disk_lines(Disk(NUMBER, "hdd", now), on, cgroup_v2=True) == DiskLines(skipped="wbt_active")
        both = DiskRules(wbt=True, cost=True, classes=on.classes)
        found = disk_lines(Disk(NUMBER, "hdd", now), both, cgroup_v2=True)
        assert (found.wbt_us, found.qos_line, found.skipped) == (0, lines.qos_line, None)


rules_of_any_kind = st.builds(
    DiskRules,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.dictionaries(
        st.sampled_from(["hdd", "nvme"]),
        st.builds(
            DiskClassRules,
            st.none() | st.integers(-1, 99_999),
            st.none() | st.builds(CostQos, st.booleans()),
            st.none() | st.just(MODEL),
        ),
    ),
)


@given(rules_of_any_kind, st.sampled_from(["hdd", "nvme", "other"]), st.none() | st.integers(0, 99_999), st.booleans())
def test_law_io_cost_never_comes_on_beside_throttling_unless_that_is_said(
    rules: DiskRules, kind: str, now: int | None, v2: bool
) -> None:
    lines = disk_lines(Disk(NUMBER, kind, now), rules, cgroup_v2=v2)
    after = now if lines.wbt_us is None else lines.wbt_us
    if lines.qos_line is not None and "enable=1" in lines.qos_line:
        assert after == 0 or not rules.check_wbt
    assert (lines.qos_line or lines.model_line) is None or (rules.cost and v2 and lines.skipped is None)
    # What was written is found so the next time: a pass comes to an end.
    assert disk_lines(Disk(NUMBER, kind, after), rules, cgroup_v2=v2).wbt_us is None
    assert lines.wbt_us is None or lines.wbt_us == wanted_wbt(kind, rules)


@given(
    st.builds(
        CostQos,
        ctrl=st.sampled_from(["auto", "user"]),
        rpct=st.floats(0, 100),
        rlat_us=st.integers(1, 10**9),
        wpct=st.floats(0, 100),
        wlat_us=st.integers(1, 10**9),
        min=st.floats(1, 10_000),
        max=st.floats(1, 10_000),
    )
)
def test_law_what_the_kernel_makes_of_a_line_counts_as_in_force(qos: CostQos) -> None:
    kernel = read_lines(qos_text(NUMBER, qos).replace("ctrl=auto", "ctrl=user"))[NUMBER]
    assert in_force(qos_text(NUMBER, qos), kernel)
    assert not in_force(qos_text(NUMBER, qos), {**kernel, "enable": "0"})
    assert not in_force(qos_text(NUMBER, qos), None)


@given(st.text(max_size=300))
def test_any_text_of_the_kernel_is_read(text: str) -> None:
    for number, words in read_lines(text).items():
        assert isinstance(line_before("8:0", words, qos=True), str), number


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (None, "8:0 enable=0 ctrl=auto"),
        ("8:0 enable=1 ctrl=auto rpct=0.00 min=1.00", "8:0 enable=1 ctrl=auto"),
        ("8:0 enable=1 ctrl=user rpct=95.00 rlat=5", "8:0 enable=1 ctrl=user rpct=95.00 rlat=5"),
        ("8:0 enable=0 ctrl=user rpct=95.00 rlat=5", "8:0 enable=0 ctrl=user rpct=95.00 rlat=5"),
    ],
)
def test_what_brings_back_a_qos_repeats_only_figures_that_somebody_chose(now: str | None, before: str) -> None:
    line = line_before(NUMBER, None if now is None else read_lines(now)[NUMBER], qos=True)
    assert line == before
    assert in_force(line, None if now is None else read_lines(now)[NUMBER])


def test_without_a_word_a_disk_is_off_and_its_model_the_kernels_own() -> None:
    assert in_force(qos_text(NUMBER, CostQos(enable=False)), None)
    assert in_force(model_text(NUMBER, CostModel()), None)
    assert not in_force(model_text(NUMBER, MODEL), None)
    assert line_before(NUMBER, None, qos=False) == "8:0 ctrl=auto"
