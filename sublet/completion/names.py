"""Names for a TAB, read from files and packages of this machine alone: no bus or API server is asked or waited for.

Whatever goes wrong, nothing is completed and nothing is said: the line that is being typed belongs to the person.
"""

import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.registry import Registry

Complete = Callable[[str], list[str]]

MAX_NAMES = 1000


def completer(names: Callable[[], Iterable[str]]) -> Complete:
    """A completion that offers the names that begin as what is typed."""

    def complete(incomplete: str) -> list[str]:
        with contextlib.suppress(Exception):
            return sorted({name for name in names() if name.startswith(incomplete)})[:MAX_NAMES]
        return []

    return complete


def _pods() -> list[str]:
    from shared.adapters.local.pods import LocalPods
    from sublet.instance import instance_settings

    return [stored.record.pod.name for stored in LocalPods(instance_settings().state_dir).stored()]


def _objects() -> list[str]:
    return ["pods", "cnr", "node", *(f"pod/{name}" for name in _pods())]


def _pod_words() -> list[str]:
    return [*(f"pod/{name}" for name in _pods()), *_pods()]


def _policies() -> Iterable[str]:
    from services.advisor.registry import POLICIES

    return _installed(POLICIES)


def _plugins() -> Iterable[str]:
    from services.evictor.registry import PLUGINS

    return _installed(PLUGINS)


def _installed(registry: "Registry[Any]") -> Iterable[str]:
    """Ours, and those of wheels, of which nothing is imported for a name."""
    known = registry.known()
    return [*known, *registry.outside(known)]


def _setting_keys() -> Iterable[str]:
    from sublet.settings_page.explain import setting_keys

    return setting_keys()


def _peers() -> Iterable[str]:
    from sublet.replay.rows import PEER_NAMES

    return PEER_NAMES


def _kinds() -> Iterable[str]:
    from sublet.whatif import kinds

    return kinds()


def _scenarios() -> Iterable[str]:
    from sublet.sim.scenario import BUILT_IN

    return [file.stem for file in BUILT_IN.glob("*.yaml")]


complete_pod = completer(_pod_words)
complete_object = completer(_objects)
complete_policy = completer(_policies)
complete_plugin = completer(_plugins)
complete_setting = completer(_setting_keys)
complete_peer = completer(_peers)
complete_kind = completer(_kinds)
complete_scenario = completer(_scenarios)
