"""Keeps a key out of what an agent is sent, should an upstream ever echo one."""

from __future__ import annotations

from collections.abc import Sequence


class KeyMask:
    """Passes bytes on, with each secret overwritten by as many asterisks, wherever pieces are cut.

    The length stays, so that a Content-Length stays true. Bytes are held back only while they could be the
    beginning of a secret.
    """

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = [secret for secret in secrets if secret]
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        if not self._secrets:
            return chunk
        data = self._held + chunk if self._held else chunk
        for secret in self._secrets:
            if secret in data:
                data = data.replace(secret, b"*" * len(secret))
        keep = max(_overlap(data, secret) for secret in self._secrets)
        self._held = data[len(data) - keep :] if keep else b""
        return data[: len(data) - keep] if keep else data

    def end(self) -> bytes:
        """What was held back."""
        held, self._held = self._held, b""
        return held


def _overlap(data: bytes, secret: bytes) -> int:
    """Length of the longest end of `data` that begins `secret`."""
    at = data.find(secret[:1], max(0, len(data) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(data[at:]):
            return len(data) - at
        at = data.find(secret[:1], at + 1)
    return 0
