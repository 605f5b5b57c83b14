"""Tests the certificates of a cluster before Ray gets them: Ray would need minutes to report that it
cannot connect, and would not say why."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from pathlib import Path

from agent_farm.errors import AgentFarmError, Overdue, Unreachable
from agent_farm.launch import as_command
from agent_farm.own_files import read_own

TLS_FILES = ("ca.crt", "tls.crt", "tls.key")  # the names that a Kubernetes secret uses
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"  # how gRPC begins, with its settings
HEAD_SECONDS = 5.0
_HINT = "af fleet status"
_SETTINGS = 4  # the type of the first frame that a server answers with


def require_tls(directory: str, host: str | None = None) -> Path:
    """The directory, if its files match each other, are valid today, and name `host`."""
    place = Path(directory)
    missing = [name for name in TLS_FILES if not (place / name).is_file()]
    if not place.is_absolute() or missing:
        raise AgentFarmError(
            f"{directory} is no directory of certificates",
            why=f"It is an absolute path with {', '.join(TLS_FILES)}.",
        )
    read_own(place / "tls.key", secret=True)
    try:
        _shake_hands(_context(place, ssl.PROTOCOL_TLS_CLIENT), _context(place, ssl.PROTOCOL_TLS_SERVER), host)
    except (ssl.SSLError, ssl.CertificateError, ValueError) as error:
        hint = as_command("openssl", "x509", "-noout", "-text", "-in", place / "tls.crt")
        what = f"The certificates in {directory} cannot be used"
        raise AgentFarmError(what, why=_reason(error), hint=hint) from error
    return place


def require_head(cluster: str, tls: str, seconds: float, own: str | None = None) -> str:
    """Check that the head answers like gRPC, with TLS or without, and accepts the certificate in `tls`, which
    has to name this machine's address, `own`, if known. Return the address that it reaches the head from."""
    host, _, port = cluster.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=seconds) as plain:
            reached_by = str(plain.getsockname()[0])
            if tls:
                place = require_tls(tls, own)
                problem = _problem_with_tls(plain, place, host)
            else:
                problem = None if _answers(plain) else "It does not answer like Ray, or it needs --tls."
    except OSError as error:
        kind = Overdue if isinstance(error, TimeoutError) else Unreachable
        what = f"The cluster at {cluster} cannot be reached"
        raise kind(what, why=error.strerror or str(error), hint=_HINT) from error
    if problem is not None:
        raise Unreachable(f"The cluster at {cluster} cannot be used", why=problem, hint=_HINT)
    return reached_by


def _problem_with_tls(plain: socket.socket, place: Path, host: str) -> str | None:
    context = _context(place, ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    try:
        with context.wrap_socket(plain, server_hostname=host) as connection:
            return None if _answers(connection) else f"It refuses the certificate in {place}."
    except TimeoutError:
        raise
    except ssl.SSLCertVerificationError as error:
        return f"Its certificate is refused here: {_reason(error)}"
    except ssl.SSLError as error:
        if error.reason and "ALERT" in error.reason:
            return f"It refuses the certificate in {place}: {_reason(error)}"
        return f"It does not use TLS: {_reason(error)}"
    except (ConnectionError, EOFError):
        return "It does not use TLS, or refuses the certificate."


def _answers(connection: socket.socket) -> bool:
    """Whether the other end greets as gRPC does; only this shows whether TLS rejects our certificate."""
    try:
        connection.sendall(_PREFACE)
        head = connection.recv(9)
    except (ConnectionError, ssl.SSLError):
        return False
    return len(head) > 3 and head[3] == _SETTINGS


def _context(place: Path, side: int) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.load_cert_chain(place / "tls.crt", place / "tls.key", password=_no_password)
    context.load_verify_locations(place / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    """Instead of a question at the terminal."""
    raise ValueError("The key is encrypted, which Ray cannot read.")


def _shake_hands(client_side: ssl.SSLContext, server_side: ssl.SSLContext, host: str | None) -> None:
    """A TLS handshake in memory: each end verifies the other's certificate, as in the cluster."""
    client_side.check_hostname = host is not None
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(back, there, server_hostname=host)
    server = server_side.wrap_bio(there, back, server_side=True)
    for step in (client.do_handshake, server.do_handshake, client.do_handshake, server.do_handshake):
        with suppress(ssl.SSLWantReadError):
            step()


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error)
