"""Say what kubelet binds to pods of this node, for as long as over-commitment asks for it."""

from collections.abc import Callable

from services.reporter.core.overcommit.kubelet_binding import KubeletManagers, ManagerStates, kubelet_binding
from shared.contracts.allocation import Condition
from shared.errors import Refused, Unavailable


class KubeletBindingReport:
    """What cannot be read is not known: then the node bears no over-commitment, and a condition says why."""

    def __init__(self, read: Callable[[], ManagerStates] | None) -> None:
        """`read` raises Unavailable; None: there is no kubelet here."""
        self._read = read
        self.said: KubeletManagers | None = None
        self.failure = ""

    def follow(self, *, wanted: bool) -> None:
        """Look again, where it is `wanted`."""
        self.said, self.failure = None, ""
        if self._read is None or not wanted:
            return
        try:
            self.said = kubelet_binding(*self._read())
        except (Unavailable, Refused) as error:
            self.failure = str(error)

    def conditions(self) -> tuple[Condition, ...]:
        """Why nothing is said; nothing where that is not so."""
        if not self.failure:
            return ()
        return (Condition(type="KubeletManagersUnreadable", message=f"{self.failure}: no over-commitment is borne"),)
