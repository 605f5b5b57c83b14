"""Certificates of a cluster for one test: a CA, directories as `--tls` takes them, a head that has one."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


class Authority:
    def __init__(self, name: str = "af test") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        builder = _builder(self._name, self._name, self._key.public_key(), valid=_DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = builder.sign(self._key, hashes.SHA256())

    def directory(self, place: Path, *, valid: timedelta = _DAY, address: str = "127.0.0.1") -> Path:
        """With a certificate for this machine; it expired already where `valid` is negative."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(address))]
        builder = _builder(_named("a machine"), self._name, key.public_key(), valid=valid)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        place.mkdir(mode=0o700)
        (place / "ca.crt").write_bytes(_pem(self.certificate))
        (place / "tls.crt").write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        (place / "tls.key").touch(mode=0o600)
        (place / "tls.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return place


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, valid: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + valid) - _DAY)
        .not_valid_after(now + valid)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@contextmanager
def greeting(directory: Path | None) -> Iterator[str]:
    """The address of what greets like a head of Ray's, over TLS with these certificates or without it."""
    context = None
    if directory is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
        context.load_verify_locations(directory / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_greet, args=(listening, context))
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _greet(listening: socket.socket, context: ssl.SSLContext | None) -> None:
    while True:
        try:
            plain, _ = listening.accept()
        except OSError:
            return
        plain.settimeout(10)
        with suppress(OSError), context.wrap_socket(plain, server_side=True) if context else plain as one:
            if one.recv(24).startswith(b"PRI * HTTP/2.0"):
                one.sendall(b"\0\0\0\4\0\0\0\0\0")
                one.recv(1)
