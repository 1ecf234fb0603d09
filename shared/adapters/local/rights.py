"""A process gives up root's identity, every capability and the way to new ones before it runs a pod's command.

Standard library only: the small process that watches a pod imports this.
"""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


def give_up_rights(uid: int, gid: int, groups: Sequence[int]) -> None:
    """Become that user permanently, without capabilities, even if the user is root, and without a way to regain any.

    Raises:
        OSError: a step failed; the process must not continue.
    """
    # In this order: the bounding set and the groups need rights that the later steps take away.
    _drop_bounding_set()
    _call("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    # Groups before the user: without root's identity they could not be changed any more.
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # A user other than root has lost what was in force with the identity; root, where the pod runs as him, has not.
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _drop_bounding_set() -> None:
    # The kernel's own last one: a newer kernel knows capabilities that have no name here.
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in range(last + 1):
        if _call("prctl", _PR_CAPBSET_READ, capability, 0, 0, 0):
            _call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)


def _call(name: str, *arguments: object) -> int:
    words = [ctypes.c_ulong(argument) if isinstance(argument, int) else argument for argument in arguments]
    result = int(getattr(_libc, name)(*words))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} ({name})")
    return result
