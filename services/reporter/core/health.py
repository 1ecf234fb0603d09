"""Derive the node's readiness from the health of its services."""

from collections.abc import Mapping, Sequence

from shared.contracts.readiness import ServiceHealth


def fold_health(
    expected: Sequence[str], heard: Mapping[str, tuple[ServiceHealth, float]], *, max_age_s: float
) -> tuple[ServiceHealth, ...]:
    """Return one health for each expected service, in that order; `heard` is the newest one with its age in seconds.

    A service without a message, or without one within `max_age_s`, is not ok: silence is not health. The text names the
    bound, not the age, so that it stays the same while the silence lasts.
    """
    return tuple(_folded(service, heard.get(service), max_age_s) for service in expected)


def _folded(service: str, heard: tuple[ServiceHealth, float] | None, max_age_s: float) -> ServiceHealth:
    if heard is None:
        return ServiceHealth(service=service, ok=False, why="not heard of yet")
    health, age_s = heard
    # The service's own age, plus the age of its message.
    input_age_s = None if health.input_age_s is None else health.input_age_s + age_s
    silent = age_s > max_age_s
    return ServiceHealth(
        service=service,
        ok=health.ok and not silent,
        why=f"silent for more than {max_age_s:g} s" if silent else health.why,
        input_age_s=input_age_s,
        config_hash=health.config_hash,
        config_revision=health.config_revision,
        config_refused=health.config_refused,
    )


def facts(services: Sequence[ServiceHealth]) -> tuple[tuple[object, ...], ...]:
    """The facts that make a readiness a new one: which services are ok and their configurations; ages are left out."""
    return tuple((h.service, h.ok, h.config_hash, h.config_revision, h.config_refused) for h in services)
