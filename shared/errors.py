"""Every error that Sublet raises on purpose.

SubletError
├── Refused          bad input from outside: counted, explained, nothing applied, the last good state stays
│   └── BadConfig    a setting: names the key, the value, the bound, and the key that was probably meant
├── Unavailable      something needed is not there now (bus, host file, API server): retry or say so
│   └── NotStored    a durable publish got no acknowledgement: the outbox keeps the fact
├── Unfit            this machine or user cannot run what was asked: says what is missing
└── Conflict         another owner holds it (second `sublet up`, foreign writer of a cgroup)
    └── IdTaken      another message is in the stream under this message id, or was: send it under a new one
"""

from dataclasses import dataclass


class SubletError(Exception):
    """Base of all; `reason` is a short stable code for counters (`stale`, `malformed`, …)."""

    def __init__(self, message: str, *, reason: str = "error") -> None:
        super().__init__(message)
        self.reason = reason


class Refused(SubletError):
    """Input from outside that cannot be used; nothing was applied."""


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """What is wrong with one setting: the path of keys, the value, and what is expected."""

    path: tuple[str, ...]
    said: str

    @property
    def key(self) -> str:
        """As it is written in commands and in the table of settings."""
        return ".".join(self.path)

    def __str__(self) -> str:
        return f"{self.key}{self.said}"


class BadConfig(Refused):
    """A setting that cannot be used; the last valid one stays. `problems` names each one, if known."""

    def __init__(self, message: str, *, reason: str = "error", problems: tuple[SettingProblem, ...] = ()) -> None:
        super().__init__(message, reason=reason)
        self.problems = problems


class Unavailable(SubletError):
    """Something needed is not there now; the same call may work later."""


class NotStored(Unavailable):
    """A durable publish that got no acknowledgement in its time budget."""


class Unfit(SubletError):
    """This host or user cannot run what was requested; the message says what is missing."""


class Conflict(SubletError):
    """Another owner has the thing."""


class IdTaken(Conflict):
    """The stream has dropped a message as the repetition of one that is another, or that it does not hold any more."""
