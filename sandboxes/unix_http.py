"""HTTP over a unix socket, for whoever asks a gateway or a mirror from this side."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path


class UnixConnection(http.client.HTTPConnection):
    """A connection to whatever listens at `path`."""

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        super().__init__("127.0.0.1", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
