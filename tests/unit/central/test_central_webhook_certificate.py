"""The webhook's certificate: made, kept, renewed before its end; who trusted the last one trusts the next."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings
from hypothesis import strategies as st

from services.central.adapters.https.certificate import AUTHORITY_LIFE, LIFE, RENEW, ServingPair, renewed

NAMES = ("sublet-webhook.sublet-system.svc", "sublet-webhook.sublet-system.svc.cluster.local")
START = datetime(2026, 1, 1, tzinfo=UTC)


def made(at: datetime = START, held: ServingPair | None = None) -> ServingPair:
    found = renewed(held, NAMES, at)
    assert found is not None
    return found


def serving(pair: ServingPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def authorities(pair: ServingPair) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pair.authorities)


def test_the_first_pair_is_for_the_service_and_for_nothing_else() -> None:
    pair = made()
    certificate, (authority,) = serving(pair), authorities(pair)
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(names.get_values_for_type(x509.DNSName)) == NAMES
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    assert (certificate.not_valid_after_utc, authority.not_valid_after_utc) == (START + LIFE, START + AUTHORITY_LIFE)


@pytest.mark.parametrize(
    ("days", "renews"), [(0, False), (30, False), (59.9, False), (60, True), (89, True), (91, True), (1000, True)]
)
def test_a_certificate_is_renewed_before_its_end_by_the_same_authority(days: float, renews: bool) -> None:
    before = made()
    after = renewed(before, NAMES, START + timedelta(days=days))
    assert (after is not None) == renews
    if after is not None:
        assert (after.authorities, after.authority_key) == (before.authorities, before.authority_key)
        assert serving(after).not_valid_after_utc == START + timedelta(days=days) + LIFE
        assert after.key != before.key


def test_other_names_want_another_certificate() -> None:
    after = renewed(made(), ("other.ns.svc",), START)
    assert after is not None
    assert after.authorities == made(held=after).authorities


def test_an_authority_is_replaced_before_what_it_signs_outlives_it_and_is_trusted_on() -> None:
    before = made()
    late = START + AUTHORITY_LIFE - LIFE - RENEW
    after = made(late, before)
    new, old = authorities(after)
    assert old == authorities(before)[0]
    serving(after).verify_directly_issued_by(new)
    again = made(late + LIFE, after)
    assert authorities(again) == [new, old]
    serving(again).verify_directly_issued_by(new)


def test_what_somebody_else_has_written_is_made_anew() -> None:
    good, other = made(), made()
    broken = [
        replace(good, **{field: junk})
        for field in ("authorities", "authority_key", "certificate", "key")
        for junk in (b"", b"junk", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    ]
    broken += [replace(good, key=other.key), replace(good, authority_key=other.authority_key)]
    broken += [replace(good, authorities=other.authorities), replace(good, certificate=other.certificate)]
    broken += [replace(good, certificate=other.certificate, key=other.key)]
    for pair in broken:
        after = made(held=pair)
        serving(after).verify_directly_issued_by(authorities(after)[0])


@settings(max_examples=25)
@given(st.lists(st.integers(1, 29), min_size=1, max_size=20))
def test_who_looks_often_enough_always_has_a_certificate_that_is_trusted(steps: list[int]) -> None:
    pair, now = made(), START
    for days in steps:
        now += timedelta(days=days)
        trusted = authorities(pair)
        pair = renewed(pair, NAMES, now) or pair
        assert serving(pair).not_valid_after_utc > now
        assert trusted[0] in authorities(pair)
