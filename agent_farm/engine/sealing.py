"""Encrypts what is asked of a machine, so that an engine's logs, object store and spill files hold no key."""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_NONCE = bytes(12)  # safe, since each message has a key of its own
_LENGTH = 32


def seal(public: bytes, data: bytes) -> bytes:
    """Only the owner of the private key can open it; not even the sender can."""
    own = X25519PrivateKey.generate()
    sender = own.public_key().public_bytes_raw()
    key = _key(own.exchange(X25519PublicKey.from_public_bytes(public)), sender, public)
    return sender + ChaCha20Poly1305(key).encrypt(_NONCE, data, None)


def opened(private: X25519PrivateKey, sealed: bytes) -> bytes | None:
    """None if it was sealed for somebody else, or changed on its way."""
    sender, text = sealed[:_LENGTH], sealed[_LENGTH:]
    public = private.public_key().public_bytes_raw()
    try:
        key = _key(private.exchange(X25519PublicKey.from_public_bytes(sender)), sender, public)
        return ChaCha20Poly1305(key).decrypt(_NONCE, text, None)
    except (InvalidTag, ValueError):
        return None


def _key(shared: bytes, sender: bytes, receiver: bytes) -> bytes:
    return HKDF(SHA256(), _LENGTH, salt=None, info=b"af-fleet-1" + sender + receiver).derive(shared)
