"""What a simulated node says is what its reporter would say: central's door reads it."""

from datetime import UTC, datetime, timedelta

from services.central.core.heartbeats.readiness import Ledger, record
from shared.contracts.readiness import Readiness
from shared.contracts.services import NODE_SERVICES
from sublet.fleet.simulated_node import SimulatedNode

NOW = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def test_a_heartbeat_is_the_contracts_own_text() -> None:
    node = SimulatedNode("fleet-00001")
    said = [Readiness.decode(node.heartbeat(NOW + timedelta(seconds=10 * turn))) for turn in range(3)]
    assert [(one.node, one.boot_id, one.seq) for one in said] == [("fleet-00001", node.boot_id, n) for n in (1, 2, 3)]
    assert said[2].sent_at == NOW + timedelta(seconds=20)
    assert said[0].ready
    assert tuple(health.service for health in said[0].services) == NODE_SERVICES
    assert said[0].encode() == _twin(node).heartbeat(NOW)


def _twin(node: SimulatedNode) -> SimulatedNode:
    twin = SimulatedNode(node.name)
    twin.boot_id = node.boot_id
    return twin


def test_another_life_begins_anew_and_central_takes_it() -> None:
    node, ledger = SimulatedNode("n1"), Ledger()
    for _ in range(5):
        assert record(ledger, Readiness.decode(node.heartbeat(NOW)), 1.0) == "new"
    before = node.boot_id
    node.restart()
    again = Readiness.decode(node.heartbeat(NOW))
    assert (again.seq, again.boot_id == before) == (1, False)
    assert record(ledger, again, 2.0) == "new"


def test_all_of_its_services_say_the_configuration_that_it_took() -> None:
    node, ledger = SimulatedNode("n1"), Ledger()
    node.heartbeat(NOW)
    node.configure(7)
    record(ledger, Readiness.decode(node.heartbeat(NOW)), 1.0)
    assert (ledger["n1"].revision, node.seq) == (7, 2)
