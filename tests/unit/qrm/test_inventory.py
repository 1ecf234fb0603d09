"""The pods of the node as qrm keeps them: what was left out of one is said, and makes nobody ill."""

from fixture_types import Virtual

from services.qrm.conditions import READ_IN_PART, Conditions
from services.qrm.core.placement.requests import request_of
from services.qrm.inventory import PodInventory
from shared.adapters.clock import LoopClock
from shared.contracts.pod import Pod

ODD = Pod(uid="a1", name="odd", unread=("owner: what stands there is none",))


class Listed:
    """A source whose list is what the test says."""

    def __init__(self, *pods: Pod) -> None:
        self.listed, self.counted = pods, 1

    def pods(self) -> tuple[Pod, ...]:
        return self.listed

    def generation(self) -> int:
        return self.counted


def test_a_pod_that_is_read_in_part_is_a_condition_and_no_illness(virtual: Virtual) -> None:
    async def main() -> None:
        source, conditions = Listed(ODD, Pod(uid="a2", name="well")), Conditions()
        inventory = PodInventory(source, LoopClock(), conditions)
        inventory.read()
        (said,) = conditions.all()
        assert (said.type, said.message) == (
            READ_IN_PART, "pod default/odd: left out: owner: what stands there is none",
        )  # fmt: skip
        assert str(conditions) == ""
        source.listed, source.counted = (), 2
        inventory.read()
        assert conditions.all() == ()

    virtual(main())


def test_koordinators_label_gives_cpus_to_a_dedicated_pod_alone() -> None:
    wishes = {qos: request_of(Pod(uid="a", name="p", qos=qos, labels={"koordinator.sh/qosClass": "LSR"}))
              for qos in ("dedicated_cores", "shared_cores", "reclaimed_cores", "system_cores")}  # fmt: skip
    assert {qos for qos, wish in wishes.items() if wish is not None} == {"dedicated_cores"}
