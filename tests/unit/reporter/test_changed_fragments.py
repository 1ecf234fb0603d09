"""When a fragment of the node's object is another one."""

from typing import Any

from services.reporter.core.field import changed


def test_times_do_not_make_a_document_another_one() -> None:
    one = {"a": [{"lastHeartbeatTime": "1", "type": "X"}], "updateTime": 3}
    assert not changed(one, {"a": [{"lastHeartbeatTime": "2", "type": "X"}]})
    others: list[Any] = [{"a": [{"type": "Y"}]}, {"a": []}, {"a": "X"}, {**one, "b": None}, {}, None]
    assert all(changed(one, other) and changed(other, one) for other in others)
