"""The what-if kinds `config_hash`, `config_expired` and `katalyst_settings`: what one config object means."""

from typing import Any, ClassVar

from services.central.core.katalyst.settings import settings_of
from services.central.core.rollout.config_hash import hash_of
from shared.core.text.durations import duration_ns, expired, moment_ns
from shared.whatif.decisions import Answer, Question, decision


class HashQuestion(Question):
    """A config as it is stored: its nulls count."""

    keeps_null: ClassVar[frozenset[str]] = frozenset({"spec_config"})

    spec_config: dict[str, Any] = {}


class HashAnswer(Answer):
    """12 hex digits."""

    hash: str


@decision("config_hash", area="kcc", asks=HashQuestion, answers=HashAnswer)
def config_hash(question: HashQuestion) -> HashAnswer:
    """The hash of a config as stored."""
    return HashAnswer(hash=hash_of(question.spec_config))


class ExpiredQuestion(Question):
    """When an object was made, how long it lasts, and what time it is; without a duration it lasts."""

    created: str
    last_duration: str | None = None
    now: str


class ExpiredAnswer(Answer):
    """Whether it is over."""

    expired: bool
    error: str | None = None
    message: str | None = None


@decision("config_expired", area="kcc", asks=ExpiredQuestion, answers=ExpiredAnswer)
def config_expired(question: ExpiredQuestion) -> ExpiredAnswer:
    """Is a temporary config over?"""
    created_ns, now_ns = moment_ns(question.created), moment_ns(question.now)
    if question.last_duration is None:
        return ExpiredAnswer(expired=False)
    return ExpiredAnswer(expired=expired(created_ns, duration_ns(question.last_duration), now_ns))


class KatalystQuestion(Question):
    """A `spec.config` of an EvictionConfiguration or an AdminQoSConfiguration."""

    keeps_null: ClassVar[frozenset[str]] = frozenset({"spec_config"})

    spec_config: dict[str, Any]


class KatalystAnswer(Answer):
    """Settings by section, and the fields that were ignored."""

    settings: dict[str, Any]
    ignored: list[str]
    error: str | None = None
    message: str | None = None


@decision("katalyst_settings", area="kcc", asks=KatalystQuestion, answers=KatalystAnswer)
def katalyst_settings(question: KatalystQuestion) -> KatalystAnswer:
    """Return Sublet's settings for a Katalyst config."""
    mapped = settings_of(question.spec_config)
    return KatalystAnswer(settings=mapped.settings, ignored=list(mapped.ignored))
