"""HMAC-SHA256 by another implementation than the code's."""

from __future__ import annotations

import hashlib


def hmac_of(key: bytes, message: bytes) -> str:
    """HMAC-SHA256 as RFC 2104 writes it, without the module that the code uses."""
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).hexdigest()
