"""Certificates of HTTPS servers: an authority of our own, and what it signs, each renewed before its end."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE, LIFE = timedelta(days=3650), timedelta(days=90)
RENEW = timedelta(days=30)
"""Before its end; the authority so much before its own that what it signs never outlives it."""
SKEW = timedelta(hours=1)
"""Nodes' clocks may be behind ours."""


@dataclass(frozen=True, slots=True)
class ServingPair:
    """In PEM: authorities that are to be trusted, the newest first, its key, the server's certificate and key."""

    authorities: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def renewed(held: ServingPair | None, names: Sequence[str], now: datetime) -> ServingPair | None:
    """The next pair; None while the one that is held will do. `names` are those of the server.

    An authority that is replaced is trusted on: who shows its certificate must be believed until he has the new one.
    """
    readable = None if held is None else _readable(held)
    if held is None or readable is None:
        return _signed(*_authority(_short(names), now), names, now)
    authority, key, certificate = readable
    if authority.not_valid_after_utc - now <= LIFE + RENEW:
        made, made_key = _authority(_short(names), now)
        return _signed(made, made_key, names, now, older=held.authorities)
    if certificate.not_valid_after_utc - now > RENEW and _names(certificate) == list(names):
        return None
    return _signed(authority, key, names, now, older=held.authorities.replace(_pem(authority), b""))


def _readable(
    held: ServingPair,
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey, x509.Certificate] | None:
    """Parse a pair; None if it is no pair of ours, as after a foreign write to the Secret."""
    with contextlib.suppress(ValueError, TypeError, IndexError, InvalidSignature, UnsupportedAlgorithm):
        authority = x509.load_pem_x509_certificates(held.authorities)[0]
        key = serialization.load_pem_private_key(held.authority_key, None)
        own = serialization.load_pem_private_key(held.key, None)
        certificate = x509.load_pem_x509_certificate(held.certificate)
        certificate.verify_directly_issued_by(authority)
        fits = authority.public_key() == key.public_key() and certificate.public_key() == own.public_key()
        if fits and isinstance(key, ec.EllipticCurvePrivateKey):
            return authority, key, certificate
    return None


def _names(certificate: x509.Certificate) -> list[str]:
    with contextlib.suppress(x509.ExtensionNotFound):
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return found.get_values_for_type(x509.DNSName)
    return []


def _authority(server: str, now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{server}-ca {now:%Y-%m-%d}")])
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = _builder(subject, subject, now, AUTHORITY_LIFE).public_key(key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.sign(key, hashes.SHA256()), key


def _signed(
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    names: Sequence[str],
    now: datetime,
    *,
    older: bytes = b"",
) -> ServingPair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _short(names))])
    builder = _builder(subject, authority.subject, now, LIFE).public_key(key.public_key())
    extensions: tuple[tuple[x509.ExtensionType, bool], ...] = (
        (x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False),
        (x509.BasicConstraints(ca=False, path_length=None), True),
        # Also usable as a client certificate for servers that trust this very authority: the extender trusts its
        # schedulers so.
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), False),
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    certificate = builder.sign(authority_key, hashes.SHA256())
    return ServingPair(_pem(authority) + older, _key_pem(authority_key), _pem(certificate), _key_pem(key))


def _short(names: Sequence[str]) -> str:
    """The Service's own name; a common name has 64 characters at most."""
    return names[0].split(".")[0]


def _builder(subject: x509.Name, issuer: x509.Name, now: datetime, life: timedelta) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - SKEW).not_valid_after(now + life)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
